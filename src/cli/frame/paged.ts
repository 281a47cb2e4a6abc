import type { Context } from './verb.ts'

/**
 * Lets `show` write to standard output, through the program that PAGER names if a terminal cannot show it at once. Without
 * a terminal, with --json, and without PAGER it writes as always. Returns when the user has left the pager.
 */
export async function paged(context: Context, show: (context: Context) => Promise<void>): Promise<void> {
  const { env, out, stdout } = context
  const program = env['PAGER'] ?? ''
  if (program === '' || env['TERM'] === 'dumb' || out.isJson || stdout.isTTY !== true) return show(context)
  const { openPager } = await import('./pager.ts')
  const pager = openPager(context, program)
  try {
    await show(pager.context)
  } finally {
    await pager.close()
  }
}
