import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { shellQuote } from '../../src/domain/shell-word.ts'
import { COMPILE_CACHE } from '../support/compile-cache.ts'
import { newHome } from './support.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** At a real terminal, which `script` (util-linux) opens: types once it is asked. Returns what the terminal showed. */
async function atTerminal(argv: readonly string[], typed: string): Promise<{ shown: string; code: number }> {
  const { env } = await newHome()
  const line = [process.execPath, MAIN, ...argv].map(shellQuote).join(' ')
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

describe.runIf(process.platform === 'linux')('at a real terminal', () => {
  test('does not show a typed secret', async () => {
    expect(await atTerminal(['login'], 'hunter2\r')).toEqual({
      shown:
        'Token: \r\nmayfly: This is not a Mayfly token. A token is ckr_ and 48 hexadecimal digits. Copy all of it.\r\n',
      code: 2,
    })
  })

  test('Ctrl-C at the question ends with 130, without a word', async () => {
    expect(await atTerminal(['login'], 'hunter2\x03')).toEqual({ shown: 'Token: \r\n', code: 130 })
  })
})
