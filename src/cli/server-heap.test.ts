import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'

const PROGRAM = `
const { enterServerHeap } = await import(${JSON.stringify(new URL('./server-heap.ts', import.meta.url).href)})
enterServerHeap({ execPath: process.execPath, execArgv: process.execArgv.slice(0, -2), env: process.env,
  argv: [process.execPath, '-p', 'JSON.stringify([process.pid, process.execArgv, process.argv.slice(1)])', 'word'] })
console.log(JSON.stringify([process.pid, 'as it was']))
`

async function enter(env: Record<string, string>, ...flags: string[]) {
  const child = spawn(process.execPath, [...flags, '-e', PROGRAM], { env: { PATH: '/bin', ...env } })
  const [out] = await Promise.all([text(child.stdout), once(child, 'close')])
  const [pid, ...rest] = JSON.parse(out)
  expect(pid).toBe(child.pid)
  return rest
}

test('the server runs in a small heap, in the same process and with the same arguments', async () => {
  const [flags, words] = await enter({})
  expect(flags.slice(0, 2)).toEqual(['--max-semi-space-size=8', '--heap-growing-percent=30'])
  expect(words).toEqual(['word'])
})

test('a heap that the operator chose is left as it is', async () => {
  expect(await enter({ NODE_OPTIONS: '--max-semi-space-size=32' })).toEqual(['as it was'])
  expect(await enter({}, '--heap-growing-percent=60')).toEqual(['as it was'])
})
