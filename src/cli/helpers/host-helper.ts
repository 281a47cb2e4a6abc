import { usage } from '../frame/failure.ts'
import { showRows } from '../frame/list.ts'
import { flag, text, type ValuesOf } from '../frame/options.ts'
import { listing } from '../frame/output.ts'
import type { Context } from '../frame/verb.ts'
import { wayTo } from '../git/wrapper.ts'
import { openAgentSession } from '../session/open.ts'
import { changeHosts, type HostTool, readHosts, writeHost } from '../tools/host-map.ts'
import { REQUEST_OPTIONS, requestOf } from '../tools/request.ts'

/** A tool that asks its helper by host alone, and how its own files lead it to ours. */
export interface HostHelper {
  readonly tool: HostTool
  /** What the tool calls a host, and several. */
  readonly noun: readonly [one: string, several: string]
  /** Throws `CliError` (usage) for what is no host. */
  needHost(text: string): string
  /** Throws `CliError` if something else is in the way, before anything is written. */
  check?(context: Context): Promise<unknown>
  /** Makes the tool ask us. Returns the paths of what was written. */
  enable(context: Context, host: string): Promise<Readonly<Record<string, string>>>
  /** Undoes that, the whole of it with the last host. Returns the path of the configuration. */
  disable(context: Context, host: string, isLast: boolean): Promise<string>
}

/** The options of a helper that is configured by host. */
export const HOST_OPTIONS = {
  write: flag('instead of answering: make the tool ask this helper for --host'),
  remove: flag('instead of answering: undo --write for --host'),
  list: flag('instead of answering: list the hosts and their backends'),
  host: text('<host>', 'with --write and --remove'),
  ...REQUEST_OPTIONS,
  username: text('<name>', 'with --write, if the backend gives no user name'),
}

type HostOptions = ValuesOf<typeof HOST_OPTIONS>

/** Does what --write, --remove or --list say; false without them. */
export async function configureHost(
  context: Context,
  helper: HostHelper,
  options: HostOptions,
): Promise<boolean> {
  const { write, remove, list, host: given } = options
  const ways = [write, remove, list].filter((one) => one === true).length
  if (ways === 0) return false
  if (ways > 1) throw usage('--write, --remove and --list are mutually exclusive.')
  if (list === true) await showHosts(context, helper)
  else if (given === undefined) throw usage('--host is required.', 'Give the host that the tool calls.')
  else if (write === true) await addHost(context, helper, helper.needHost(given), options)
  else await removeHost(context, helper, helper.needHost(given))
  return true
}

/** What the tool adds to the command line. Throws `CliError` (usage). */
export function needOperation<Word extends string>(given: Word | undefined, name = 'operation'): Word {
  if (given !== undefined) return given
  throw usage(`The argument "${name}" is missing.`, 'To configure the tool, use --write, --remove or --list.')
}

async function addHost(
  context: Context,
  { tool, noun, check, enable }: HostHelper,
  host: string,
  options: HostOptions,
): Promise<void> {
  const { backend, ttl } = requestOf(options)
  const { scope, param, username } = options
  const session = await openAgentSession(context)
  await session.client.backend(backend)
  const way = wayTo(context, session)
  const paths = await changeHosts(context, async () => {
    await check?.(context)
    // Ours first: the tool must not ask before we can answer.
    await writeHost(context, tool, host, { backend, ttl, scope, param, username, way })
    return enable(context, host)
  })
  await context.out.show({ [noun[0]]: host, backend, ...paths }, () =>
    listing({ [host]: `credentials of ${backend}`, ...paths }),
  )
}

async function removeHost(context: Context, helper: HostHelper, host: string): Promise<void> {
  const { tool, noun, disable } = helper
  const config = await changeHosts(context, async () => {
    const known = await readHosts(context, tool)
    // The tool's first: it must not ask for a host that we no longer know.
    const path = await disable(context, host, known.size === 1 && known.has(host))
    if (await writeHost(context, tool, host, undefined)) return path
    throw usage(
      `That ${noun[0]} is not set up.`,
      `List the ${noun[1]} with \`mayfly helper ${tool} --list\`.`,
    )
  })
  await context.out.show({ [noun[0]]: host, config }, () => listing({ [host]: 'removed' }))
}

async function showHosts(context: Context, { tool, noun }: HostHelper): Promise<void> {
  const hosts = [...(await readHosts(context, tool))]
  const rows = hosts.map(([host, { backend, way }]) => ({ [noun[0]]: host, backend, server: way.server }))
  await showRows(context, rows, {
    things: noun[1],
    none: `No ${noun[1]} are set up.`,
    heading: [noun[0].toUpperCase(), 'BACKEND', 'SERVER'],
    cells: (row) => Object.values(row),
  })
}
