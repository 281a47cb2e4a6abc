import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { shellQuote } from '../../src/domain/formats/shell-word.ts'
import { COMPILE_CACHE } from '../support/compile-cache.ts'
import { startFalseServer } from './false-server.ts'
import { newHome } from './support.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** At a real terminal, which `script` (util-linux) opens: types once it is asked. Returns what the terminal showed. */
async function atTerminal(
  argv: readonly string[],
  typed: string,
  environment?: Readonly<Record<string, string>>,
  program?: string,
): Promise<{ shown: string; code: number }> {
  const env = environment ?? (await newHome()).env
  const words = program === undefined ? [process.execPath, MAIN] : [program]
  const line = [...words, ...argv].map(shellQuote).join(' ')
  const child = spawn('script', ['-q', '-e', '-c', line, '/dev/null'], {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  let isTyped = false
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk
    if (isTyped || !shown.endsWith(': ')) return
    isTyped = true
    child.stdin.write(typed)
  })
  const [code] = await once(child, 'close')
  return { shown, code }
}

/** Where persons do not log in with the command, so that it asks for the token at once. */
async function withoutPersons() {
  const server = await startFalseServer({
    'GET /.well-known/openid-configuration': (_, url) => [200, { issuer: url, jwks_uri: `${url}/jwks` }],
  })
  const { env } = await newHome()
  return { env: { ...env, MAYFLY_SERVER: server.url }, close: server.close }
}

describe.runIf(process.platform === 'linux')('at a real terminal', () => {
  let env: Record<string, string>
  let close: () => Promise<unknown>
  beforeAll(async () => {
    ;({ env, close } = await withoutPersons())
  })
  afterAll(() => close())

  test('does not show a typed secret', async () => {
    expect(await atTerminal(['login'], 'hunter2\r', env)).toEqual({
      shown:
        'Token: \r\nmayfly: This is not a Mayfly token. A token is ckr_ and 48 hexadecimal digits. Copy all of it.\r\n',
      code: 2,
    })
  })

  test('Ctrl-C at the question ends with 130, without a word', async () => {
    expect(await atTerminal(['login'], 'hunter2\x03', env)).toEqual({ shown: 'Token: \r\n', code: 130 })
  })

  describe('what is longer than the terminal', () => {
    const PAGER = "sed 's/^/paged: /'"

    test.each(['PAGER', 'no PAGER'])('with %s', async (which) => {
      const { env, home } = await newHome()
      const profiles = Object.fromEntries(
        Array.from({ length: 40 }, (_, n) => [
          `p${n}`,
          { server: 'https://x.example', login: 'bearer', secret_in: 'file' },
        ]),
      )
      await mkdir(join(home, 'config/mayfly'), { recursive: true, mode: 0o700 })
      await writeFile(join(home, 'config/mayfly/config.json'), JSON.stringify({ profiles }), { mode: 0o600 })
      const more = which === 'PAGER' ? { PAGER } : {}
      const { shown, code } = await atTerminal(['profile', 'ls'], '', { ...env, ...more })
      expect(code).toBe(0)
      expect(shown.match(/^paged: .*x\.example/gm) ?? []).toHaveLength(which === 'PAGER' ? 40 : 0)
      expect(shown.match(/x\.example/g)).toHaveLength(40)
      // What fits is not worth a pager.
      const fits = await atTerminal(['profile', 'show', 'p1'], '', { ...env, ...more })
      expect(fits.shown).not.toContain('paged')
      // A pager that the user leaves at once is no error.
      const left = await atTerminal(['profile', 'ls'], '', { ...env, PAGER: 'head -n 1' })
      expect([left.code, left.shown.match(/x\.example/g)?.length ?? 0]).toEqual([0, 0])
    })
  })

  test.each([60, 200])('help at %i columns', async (columns) => {
    const line = `stty cols ${columns}; ${[process.execPath, MAIN, 'run', '--help'].map(shellQuote).join(' ')}`
    const { shown } = await atTerminal(['-c', line], '', (await newHome()).env, 'sh')
    const prose = shown.split('\r\n').filter((one) => !one.startsWith('  $ '))
    expect(prose.length).toBeGreaterThan(20)
    const longest = Math.max(...prose.map((one) => one.length))
    if (columns === 60) expect(longest).toBeLessThanOrEqual(60)
    else expect(longest).toBeGreaterThan(100)
  })
})
