import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { poll } from '../support/server-process.ts'

const ROOT = join(import.meta.dirname, '../..')

/** `npm start` with an empty home, on a free port. Resolves when the quickstart text is out. */
async function npmStart() {
  const home = mkdtempSync(join(tmpdir(), 'mayfly-npm-start-'))
  const flags = ['--listen', '127.0.0.1:0', '--data-dir', join(home, 'data')]
  const npm = spawn('npm', ['start', '--', ...flags], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', HOME: home, npm_config_update_notifier: 'false' },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  onTestFinished(() => {
    try {
      process.kill(-npm.pid!, 'SIGKILL')
    } catch {}
    rmSync(home, { recursive: true, force: true })
  })
  const ended = once(npm, 'exit')
  const stderr = text(npm.stderr)
  let stdout = ''
  npm.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
  })
  await poll('the quickstart text', () => stdout.includes('/docs\n'))
  const port = Number(/listens on http:\/\/[^:]+:(\d+)/.exec(stdout)?.[1])
  return { npm, ended, stderr, stdout, port }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

test('npm start serves a first credential from the sources, and a signal to npm ends the server', async () => {
  const { npm, ended, stderr, stdout, port } = await npmStart()
  const token = /token +(ckr_[0-9a-f]+)/.exec(stdout)?.[1]
  const issued = await fetch(`http://127.0.0.1:${port}/api/v1/credentials`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ backend: 'demo', ttl: '10m' }),
  })
  expect(issued.status).toBe(201)

  expect(await isListening(port)).toBe(true)
  npm.kill('SIGTERM')
  await ended
  await poll('the port to be free', async () => !(await isListening(port)))
  expect(await stderr).not.toMatch(/Warning|Error/)
})
