import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import type { IConnackPacket, IPublishPacket, Packet } from 'mqtt-packet'
import { BackendError, denied, type Fault, unavailable } from '../../domain/backend-error.ts'
import { MAX_UPSTREAM_BYTES } from '../../domain/limits.ts'
import { boundReplies, checkedSocket, connectionError } from '../../egress/network.ts'
import type { Host } from '../kind.ts'
import { addressOf, type Config } from './config.ts'

/** https://mosquitto.org/documentation/dynamic-security/, "Topic API" */
const CONTROL = '$CONTROL/dynamic-security/v1'
const RESPONSE = `${CONTROL}/response`
/** MQTT 5.0, §2.4: codes from here on are failures. */
const FAILURE = 0x80
const KEEP_ALIVE_S = 60

/** Reason codes of CONNACK (MQTT 5.0, §3.2.2.2). */
const REFUSALS: Readonly<Record<number, [Fault, string]>> = {
  132: ['misconfigured', 'The broker does not speak MQTT 5.'],
  134: ['denied', 'The broker refused the login.'],
  135: ['denied', 'The broker refused the login.'],
  138: ['denied', 'The broker has banned the client.'],
}

export interface Connection {
  readonly isOpen: boolean
  /** The message that answers this one. Throws `BackendError`. */
  ask(id: string, message: string): Promise<string>
  close(): void
}

/** A session of MQTT 5 that speaks to the dynamic security plugin. Throws `BackendError`. */
export async function openConnection(settings: Config, host: Host, signal: AbortSignal): Promise<Connection> {
  const mqtt = await import('mqtt-packet')
  let stream: Duplex | undefined
  const cut = () => stream?.destroy()
  signal.addEventListener('abort', cut, { once: true })
  try {
    stream = await openStream(settings, host, signal)
    const session = createSession(stream, mqtt)
    session.send({
      cmd: 'connect',
      protocolId: 'MQTT',
      protocolVersion: 5,
      clientId: `mayfly-${randomBytes(12).toString('hex')}`,
      clean: true,
      keepalive: KEEP_ALIVE_S,
      username: settings.username,
      password: Buffer.from(settings.password),
      properties: { maximumPacketSize: MAX_UPSTREAM_BYTES },
    })
    const { reasonCode = 0 } = (await session.next('connack')) as IConnackPacket
    if (reasonCode >= FAILURE) {
      const [fault, message] = REFUSALS[reasonCode] ?? [
        'unavailable',
        'The broker cannot take the connection.',
      ]
      throw new BackendError(fault, message, { detail: `CONNACK ${reasonCode}`, login: true })
    }
    session.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: RESPONSE, qos: 0 }] })
    const { granted } = (await session.next('suback')) as { granted: readonly unknown[] }
    if (Number(granted[0]) >= FAILURE) throw denied(NO_CONTROL)
    return session
  } catch (error) {
    stream?.destroy()
    throw error instanceof BackendError ? error : connectionError(error, 'The broker', signal)
  } finally {
    signal.removeEventListener('abort', cut)
  }
}

const NO_CONTROL =
  'The broker does not let Mayfly use $CONTROL/dynamic-security: the plugin is not loaded, or the client lacks a role such as admin.'

async function openStream({ url, local, ca }: Config, host: Host, signal: AbortSignal): Promise<Duplex> {
  const address = addressOf(url)
  const socket = checkedSocket(host, { local, givesLogin: address.scheme === 'mqtt' })
  socket.connect(address.port, address.host)
  await once(socket, 'connect', { signal }).catch((error: unknown) => {
    socket.destroy()
    throw error
  })
  socket.setNoDelay(true)
  if (address.scheme === 'mqtt') return socket
  const name = isIP(address.host) === 0 ? { servername: address.host } : {}
  const secure = connectTls({ socket, host: address.host, ...name, ...(ca === undefined ? {} : { ca }) })
  await once(secure, 'secureConnect', { signal }).catch((error: unknown) => {
    secure.destroy()
    throw error
  })
  return secure
}

interface Waiter {
  resolve(value: never): void
  reject(error: unknown): void
}

const notUnderstood = () =>
  unavailable('The broker sent a reply that Mayfly does not understand.', {
    reason: 'bad_answer',
  })

/** The packets of one stream. When it ends, for whatever reason, all that is awaited fails. */
function createSession(stream: Duplex, { parser, generate }: typeof import('mqtt-packet')) {
  const waiting = new Map<string, Waiter>()
  const wait = <T>(key: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    waiting.set(key, { resolve, reject })
    // A caller that awaits it gets the error; nobody does once the caller has gone.
    promise.catch(() => undefined)
    return promise
  }
  const settle = (key: string, act: (waiter: Waiter) => void) => {
    const waiter = waiting.get(key)
    waiting.delete(key)
    if (waiter !== undefined) act(waiter)
  }
  const failAll = (error: unknown) => {
    for (const key of [...waiting.keys()]) settle(key, ({ reject }) => reject(error))
  }
  /** By the id of the packet, to tell which message was refused. */
  const sent = new Map<number, string>()
  let lastPacket = 1

  const packets = parser({ protocolVersion: 5 })
  const replied = boundReplies(stream)
  stream.on('data', (chunk: Buffer) => packets.parse(chunk))
  stream.on('error', (error) => failAll(connectionError(error, 'The broker')))
  stream.on('close', () => failAll(unavailable('The broker closed the connection.')))
  packets.on('error', (error: Error) => stream.destroy(error))
  packets.on('packet', (packet: Packet) => {
    replied()
    if (packet.cmd === 'publish') onMessage(packet)
    else if (packet.cmd === 'puback') {
      const id = sent.get(packet.messageId ?? 0)
      sent.delete(packet.messageId ?? 0)
      if ((packet.reasonCode ?? 0) < FAILURE || id === undefined) return
      const detail = `PUBACK ${packet.reasonCode}`
      settle(id, ({ reject }) => reject(denied(NO_CONTROL, { detail })))
    } else settle(packet.cmd, ({ resolve }) => resolve(packet as never))
  })

  function onMessage({ topic, payload }: IPublishPacket) {
    if (topic !== RESPONSE) return
    const text = payload.toString()
    const id = /"correlationData":\s*"(\d+)"/.exec(text)?.[1]
    if (id !== undefined) settle(id, ({ resolve }) => resolve(text as never))
    else failAll(notUnderstood())
  }

  const send = (packet: Packet) => {
    stream.write(generate(packet, { protocolVersion: 5 }))
  }
  return {
    get isOpen() {
      return !stream.destroyed && stream.writable
    },
    send,
    next: (cmd: Packet['cmd']) => wait<Packet>(cmd),
    ask(id: string, message: string) {
      if (stream.destroyed) {
        return Promise.reject(unavailable('The broker closed the connection.'))
      }
      const reply = wait<string>(id)
      lastPacket = (lastPacket % 65_535) + 1
      sent.set(lastPacket, id)
      send({
        cmd: 'publish',
        topic: CONTROL,
        payload: message,
        qos: 1,
        messageId: lastPacket,
        dup: false,
        retain: false,
      })
      return reply
    },
    close: () => stream.destroy(),
  }
}
