import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  claimSession,
  newDirectory,
  readSession,
  tokensIn,
  writeSession,
} from '../../integrations/github-action/src/session.ts'
import { startFalseServer } from '../cli/false-server.ts'

let server: Awaited<ReturnType<typeof startFalseServer>>
let temporary: string
beforeEach(async () => {
  server = await startFalseServer({ 'DELETE /v1/login': () => [204, undefined] })
  temporary = await mkdtemp(join(tmpdir(), 'mayfly-session-'))
})
afterEach(async () => {
  await server.close()
  await rm(temporary, { recursive: true })
})

const tokenOf = (token: string) => ({ token, expiresAt: 2e12, renewAt: 2e12, scope: 'demo' })
const ended = () => server.got.map(({ method, path, authorization }) => `${method} ${path} ${authorization}`)

function begin() {
  const directory = newDirectory(temporary)
  const place = { server: server.url, audience: server.url }
  writeSession(directory, { ...place, run: 'run_1', heartbeatMs: 1_000 })
  return { directory, tokens: tokensIn(directory, place) }
}

test('only the user can read the session', async () => {
  const { directory } = begin()
  expect((await stat(directory)).mode & 0o777).toBe(0o700)
  expect((await stat(join(directory, 'session.json'))).mode & 0o777).toBe(0o600)
})

test('a login anew is on record before the one that it replaces ends', async () => {
  const { directory, tokens } = begin()
  await tokens.save(tokenOf('first'))
  expect(ended()).toEqual([])
  await tokens.save(tokenOf('second'))
  expect(ended()).toEqual(['DELETE /v1/login Bearer first'])
  expect(await tokens.load()).toEqual(tokenOf('second'))
  expect(readSession(directory)).toMatchObject({ run: 'run_1', token: { token: 'second' } })
})

test('a session is claimed once, with its newest login; a login after that is ended at once', async () => {
  const { directory, tokens } = begin()
  await tokens.save(tokenOf('first'))
  expect(claimSession(directory)).toMatchObject({ run: 'run_1', token: { token: 'first' } })
  expect(claimSession(directory)).toBeUndefined()
  await expect(tokens.save(tokenOf('late'))).rejects.toThrow('claimed')
  expect(ended()).toEqual(['DELETE /v1/login Bearer late'])
  expect(readSession(directory)).toBeUndefined()
})
