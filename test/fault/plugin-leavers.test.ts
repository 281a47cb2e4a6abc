import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pidSpace } from '../../src/plugins/process/isolation.ts'
import { openLeaver } from '../support/plugins/leaver.ts'
import { poll } from '../support/server-process.ts'

const LEAVER = join(import.meta.dirname, '..', 'support', 'plugins', 'leaver.ts')
const canTry = process.geteuid?.() === 0 && pidSpace() !== undefined

let count = 0
/** A day and a bit, which no other process sleeps. */
const newSeconds = () => {
  count += 1
  return `${86_400 + count}.${process.pid}`
}

async function pidsWith(...wanted: string[]): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''))
  const words = (await Promise.all(lines)).map((line) => line.split('\0'))
  return pids.filter((_, at) => wanted.every((word) => words[at]?.includes(word))).map(Number)
}

const sleepers = async (seconds: string) => (await pidsWith('/bin/sleep', seconds)).length
const areGone = (seconds: string) =>
  poll('what it started is gone', async () => (await sleepers(seconds)) === 0)

describe.runIf(canTry)('what a plugin started and sent out of its process group ends', () => {
  it('with its backend', async () => {
    const seconds = newSeconds()
    const { backend } = await openLeaver(seconds)
    expect(await sleepers(seconds)).toBe(2)
    await backend[Symbol.asyncDispose]()
    await areGone(seconds)
  })

  it('with its process', async () => {
    const seconds = newSeconds()
    const { backend, entry } = await openLeaver(seconds)
    const pids = await pidsWith(entry)
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    await areGone(seconds)
    await backend[Symbol.asyncDispose]()
  })

  it('with a server that is killed', async () => {
    const seconds = newSeconds()
    const host = spawn(process.execPath, [LEAVER, seconds], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(host, 'exit')
    try {
      await once(host.stdout, 'data')
      expect(await sleepers(seconds)).toBe(2)
    } finally {
      host.kill('SIGKILL')
      await ended
    }
    await areGone(seconds)
  })
})
