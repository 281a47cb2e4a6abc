import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { newHome, spawnCli } from '../../../test/cli/support.ts'
import { thrown } from '../../../test/support/scripted-server.ts'
import { createClient } from '../../client/client.ts'
import { fetchTransport } from '../../client/transport.ts'
import { nodeTransport } from './transport.ts'

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n'

/** Sends these bytes to every request, and keeps the connection open. */
async function answering(bytes: string) {
  const closed = Promise.withResolvers<void>()
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('close', () => closed.resolve())
    socket.once('data', () => socket.write(bytes))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}`, closed: closed.promise }
}

const callOver = (transport: ReturnType<typeof nodeTransport>, server: string, timeoutMs = 30_000) =>
  thrown(createClient({ server, auth: { kind: 'none' }, retries: 0, transport, timeoutMs }).health())

test('a reply with status 101 ends the call, and the connection', async () => {
  const server = await answering(SWITCH)
  expect(await callOver(nodeTransport(), server.url)).toMatchObject({ code: 'unexpected_reply', status: 101 })
  await server.closed
  expect(await callOver(fetchTransport, server.url)).toMatchObject({ name: 'UnreachableError' })
})

test('a reply with status 101 that names no protocol ends the call in time', async () => {
  const server = await answering('HTTP/1.1 101 Switching Protocols\r\n\r\n')
  for (const transport of [nodeTransport(), fetchTransport])
    expect(await callOver(transport, server.url, 100)).toBeInstanceOf(Error)
})

test('the command reports a reply with status 101', async () => {
  const server = await answering(SWITCH)
  const { env } = await newHome()
  const argv = ['status', '--server', server.url]
  expect(
    await spawnCli(argv, {
      env: { ...env, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: `ckr_${'0'.repeat(48)}` },
    }).ended,
  ).toEqual({
    code: 3,
    signal: null,
    stdout: '',
    stderr:
      'mayfly: The answer (status 101) is not from a Mayfly server. Check the address in --server, MAYFLY_SERVER or the profile.\n',
  })
})
