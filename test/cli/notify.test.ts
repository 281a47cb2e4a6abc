import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newEnrollee } from '../support/enrollee.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
let env: Record<string, string>
let directory: string
let ops: WebhookReceiver

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'mayfly-notify-'))
  ops = await startWebhookReceiver(directory)
  world = await startWorld({ yaml: ops.yaml, jobs: true })
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(async () => {
  await world.close()
  await ops.close()
  rmSync(directory, { recursive: true })
})

const mayfly = (...argv: string[]) => runCli(argv, { env })
const enroll = (name: string) =>
  world.app
    .as(undefined)
    .post('/v1/enroll', { name, scopes: ['demo:read'], public_key: newEnrollee().publicKey })

test('notify test ends with 0 only if the receiver took the message', async () => {
  const taken = await mayfly('notify', 'test', 'ops')
  expect([taken.code, taken.stdout]).toEqual([0, 'ops took the message.\n'])
  expect(ops.got.map(({ type }) => type)).toEqual(['test'])
  ops.status = 503
  const refused = await mayfly('notify', 'test', 'ops', '--json')
  expect([refused.code, JSON.parse(refused.stdout)]).toEqual([
    1,
    { name: 'ops', taken: false, reason: 'refused' },
  ])
  const said = await mayfly('notify', 'test', 'ops')
  expect([said.code, said.stdout]).toEqual([
    1,
    'ops did not take the message. It refused the message. The log of the server says more.\n',
  ])
  ops.status = 200
  const unknown = await mayfly('notify', 'test', 'nobody')
  expect([unknown.code, unknown.stderr]).toEqual([
    1,
    expect.stringContaining('The configuration of this server has no such receiver.'),
  ])
  const { body } = await world.app.local.get('/v1/admin/audit?action=notification.tested')
  expect(body.map((one: { outcome: string }) => one.outcome)).toEqual(['failed', 'failed', 'ok'])
  expect(world.app.logged()).not.toContain('whsec_')
})

test('a request that waits is told to the receiver, and shown by pending --follow, once each', async () => {
  await enroll('first-bot')
  const following = spawnCli(['pending', '--follow'], { env })
  await following.said('first-bot', 'stdout')
  await enroll('second-bot')
  await following.said('second-bot', 'stdout')
  following.child.kill('SIGINT')
  const { stdout } = await following.ended
  expect(stdout.split('\n').filter((line) => line.includes('-bot'))).toHaveLength(2)
  await expect.poll(() => JSON.stringify(ops.got), { timeout: 30_000 }).toMatch(/first-bot[\s\S]*second-bot/)
})

test('pending --follow takes no id and no status', async () => {
  const { code, stderr } = await mayfly('pending', '--follow', '--status', 'rejected')
  expect([code, stderr]).toEqual([2, expect.stringContaining('--follow shows all that is pending.')])
})
