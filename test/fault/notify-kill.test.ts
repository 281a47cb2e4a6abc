import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newEnrollee } from '../support/enrollee.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

const directory = mkdtempSync(join(tmpdir(), 'mayfly-notify-kill-'))
let ops: WebhookReceiver
beforeAll(async () => {
  ops = await startWebhookReceiver(directory)
  writeFileSync(join(directory, 'mayfly.yaml'), ops.yaml)
})
afterAll(async () => {
  await ops.close()
  rmSync(directory, { recursive: true })
})

const start = () =>
  startServerProcess({
    dataDir: join(directory, 'data'),
    flags: ['--config', join(directory, 'mayfly.yaml')],
  })
const enroll = (server: ServerProcess, name: string) =>
  server.call(undefined, 'POST', '/v1/enroll', { name, public_key: newEnrollee().publicKey })
const textsOf = (from: number) => ops.got.slice(from).map(({ data }) => String(data['text']))

test('a server that is killed between a message and its position sends it again, and loses none', async () => {
  let server = await start()
  // The receiver has it, and the server does not know.
  ops.status = undefined
  await enroll(server, 'first')
  await expect.poll(() => ops.got.length, { timeout: 30_000 }).toBe(1)
  await server.kill()

  ops.status = 200
  server = await start()
  await expect.poll(() => ops.got.length, { timeout: 30_000 }).toBe(2)
  expect(ops.got[1]).toEqual(ops.got[0])
  // The receiver has answered, and its position is behind the horizon.
  await enroll(server, 'second')
  await expect.poll(() => ops.got.length, { timeout: 30_000 }).toBe(3)
  await server.kill()

  const seen = ops.got.length
  server = await start()
  await enroll(server, 'third')
  // In a message of its own, or in one with those that are sent again.
  await expect.poll(() => textsOf(seen).join(), { timeout: 30_000 }).toContain('third')
  expect(textsOf(0).join()).toContain('first wants to become an agent')
  await server.terminate()
}, 120_000)
