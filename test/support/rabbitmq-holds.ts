import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { type ChannelModel, connect } from 'amqplib'
import type { Issued } from '../../src/backends/kind.ts'
import type { Hold } from '../../src/plugin-sdk/testing/open-kind.ts'
import { subscribe } from './mosquitto-client.ts'
import type { RabbitServer } from './rabbitmq-server.ts'

const fieldsOf = ({ fields }: Issued) => ({
  username: String(fields?.['username']),
  password: String(fields?.['password']),
  url: String(fields?.['url']),
})

/** Opens connections without end, eight at a time, and keeps those that it gets. */
export async function opensInALoop(issued: Issued): Promise<Hold> {
  const { url } = fieldsOf(issued)
  const open = new Set<ChannelModel>()
  let isOver = false
  const first = Promise.withResolvers<void>()
  const loop = async () => {
    while (!isOver) {
      const connection = await connect(url).catch(() => undefined)
      if (connection === undefined) continue
      open.add(connection)
      connection.on('error', () => undefined)
      connection.on('close', () => open.delete(connection))
      if (open.size >= 8) first.resolve()
      if (open.size > 40) await [...open][0]?.close().catch(() => undefined)
    }
  }
  const loops = Promise.all(Array.from({ length: 8 }, loop))
  await first.promise
  return {
    works: async () => {
      const channels = [...open].map((one) => one.createChannel().then(() => true))
      const all = await Promise.all(channels.map((channel) => channel.catch(() => false)))
      return all.includes(true)
    },
    async [Symbol.asyncDispose]() {
      isOver = true
      await loops
      await Promise.all([...open].map((one) => one.close().catch(() => undefined)))
    },
  }
}

/** An open connection whose client answers nothing, not even the request to close. */
export async function staysSilent(issued: Issued): Promise<Hold> {
  const connection = await connect(fieldsOf(issued).url)
  const channel = await connection.createChannel()
  connection.on('error', () => undefined)
  channel.on('error', () => undefined)
  const socket = socketOf(connection)
  let isOpen = true
  socket.once('close', () => {
    isOpen = false
  })
  await channel.checkQueue('contract').catch(() => undefined)
  // The library reads no more, and so does not answer; the socket still notices its end.
  socket.removeAllListeners('readable')
  socket.removeAllListeners('data')
  socket.on('data', () => undefined)
  return {
    works: async () => isOpen,
    async [Symbol.asyncDispose]() {
      socket.destroy()
    },
  }
}

const socketOf = (connection: ChannelModel) => (connection.connection as unknown as { stream: Socket }).stream

/** A persistent session of MQTT, with a subscription. */
export async function mqttSession(issued: Issued, { api, mqttPort }: RabbitServer): Promise<Hold> {
  const login = { ...fieldsOf(issued), host: '127.0.0.1', port: mqttPort }
  // RabbitMQ 3.10 speaks MQTT 3.1.1.
  const options = ['-V', '311', '-i', `hold-${login.username}`, '-c', '-q', '1']
  const session = subscribe(login, 'contract', ...options)
  if (!(await session.granted)) throw new Error(await session.ended)
  const message = { properties: {}, routing_key: 'contract', payload: 'x', payload_encoding: 'string' }
  return {
    // A message reaches it, or its end does.
    async works() {
      const next = session.next()
      await api('POST', '/exchanges/%2F/amq.topic/publish', message)
      return next
    },
    async [Symbol.asyncDispose]() {
      session.close()
    },
  }
}

/** A session of STOMP 1.2, with a subscription. */
export async function stompSession(issued: Issued, port: number): Promise<Hold> {
  const { username, password } = fieldsOf(issued)
  const socket = connectTcp(port, '127.0.0.1')
  socket.setEncoding('utf8')
  await once(socket, 'connect')
  socket.write(`CONNECT\naccept-version:1.2\nhost:/\nlogin:${username}\npasscode:${password}\n\n\0`)
  const [reply] = (await once(socket, 'data')) as [string]
  if (!reply.startsWith('CONNECTED')) throw new Error(reply)
  let isOpen = true
  socket.once('close', () => {
    isOpen = false
  })
  socket.on('error', () => undefined)
  return {
    works: async () => isOpen,
    async [Symbol.asyncDispose]() {
      socket.destroy()
    },
  }
}
