import { appendFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { installServer } from './installed-server.ts'

test('notifications.md works as shown', async () => {
  let ops: Awaited<ReturnType<typeof startWebhookReceiver>> | undefined
  const server = await installServer(undefined, async (etc) => {
    ops = await startWebhookReceiver(etc)
  })
  try {
    const at = ['--data-dir', join(server.home, 'var')]
    const login = ['--host', 'db.internal', '--database', 'shop', '--username', 'mayfly', '--no-check']
    await server.mayfly('backend', 'add', 'postgres', 'orders', ...login, ...at)
    const { notify } = JSON.parse(ops?.yaml ?? '')
    await appendFile(join(server.etc, 'mayfly.yaml'), `\nnotify: ${JSON.stringify(notify)}\n`)
    await server.runPage('docs/operations/notifications.md')
    expect(ops?.got.map(({ type }) => type)).toEqual(['test'])
    expect(await readFile(join(server.etc, 'ops.key'), 'utf8')).toMatch(/^whsec_[\w+/]{43}=\n$/)
  } finally {
    await server.close()
    await ops?.close()
  }
})
