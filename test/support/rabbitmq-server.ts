import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../src/backends/rabbitmq/config.ts'
import { eventually } from './app.ts'
import { freePort } from './free-port.ts'

/** Not the one in PATH of Debian, which only root and the account of the system's broker may run. */
const PROGRAM = '/usr/lib/rabbitmq/bin/rabbitmq-server'

export interface RabbitServer {
  readonly url: string
  readonly amqpUrl: string
  /** A configuration for a user of Mayfly's own, with the least rights. */
  readonly settings: Config
  /** As an administrator, past the kind. Throws for a status above 299, but for 404. */
  api(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>
  /** Where the plugins listen, if there are any. */
  readonly mqttPort: number
  readonly stompPort: number
  /** For `rabbitmqctl` and the others beside it, in /usr/lib/rabbitmq/bin. */
  readonly env: Readonly<Record<string, string>>
  stop(): Promise<void>
}

type Plugin = 'rabbitmq_mqtt' | 'rabbitmq_stomp'

/** A broker with the management plugin and others, on ports and in directories of its own. */
export async function startRabbit(plugins: readonly Plugin[] = []): Promise<RabbitServer> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-rabbit-'))
  const ports = await Promise.all(Array.from({ length: 6 }, freePort))
  const [amqp = 0, api = 0, distribution = 0, epmd = 0, mqttPort = 0, stompPort = 0] = ports
  const at = (name: string) => join(directory, name)
  await mkdir(at('home'))
  await writeFile(at('plugins'), `[${['rabbitmq_management', ...plugins].join(',')}].\n`)
  const listeners = [
    `listeners.tcp.1 = 127.0.0.1:${amqp}\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = ${api}\n`,
    plugins.includes('rabbitmq_mqtt') ? `mqtt.listeners.tcp.1 = 127.0.0.1:${mqttPort}\n` : '',
    plugins.includes('rabbitmq_stomp') ? `stomp.listeners.tcp.1 = 127.0.0.1:${stompPort}\n` : '',
  ]
  await writeFile(at('rabbitmq.conf'), listeners.join(''))
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: at('home'),
    ERL_EPMD_PORT: String(epmd),
    RABBITMQ_NODENAME: `mayfly${amqp}@localhost`,
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: at('data'),
    RABBITMQ_LOG_BASE: at('log'),
    RABBITMQ_CONFIG_FILE: at('rabbitmq.conf'),
    RABBITMQ_ADVANCED_CONFIG_FILE: '/dev/null',
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_ENABLED_PLUGINS_FILE: at('plugins'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+sbwt none',
  }
  // With a group of its own, so that all of its processes end with it; epmd beside it would otherwise stay as a daemon.
  const start = (program: string, ...args: string[]) =>
    spawn(program, args, { env, cwd: directory, stdio: 'ignore', detached: true })
  const children = [start('epmd', '-port', String(epmd)), start(PROGRAM)]
  const faults: unknown[] = []
  for (const child of children) child.on('error', (error) => faults.push(error))
  const stop = async () => {
    await Promise.all(children.map(end))
    await rm(directory, { recursive: true, force: true })
  }
  const url = `http://127.0.0.1:${api}`
  const ask = asking(`${url}/api`)
  try {
    await eventually(async () => {
      if (faults.length > 0) throw faults[0]
      const { status } = await ask('GET', '/whoami')
      // While it starts, it listens before it knows its paths.
      if (status === 404) throw new Error('the management plugin has not started')
    })
    // The management plugin may be there before the other listeners.
    const listening = [amqp, ...(plugins.includes('rabbitmq_mqtt') ? [mqttPort] : [])]
    if (plugins.includes('rabbitmq_stomp')) listening.push(stompPort)
    for (const port of listening) await eventually(() => answers(port))
    const login = { username: 'mayfly', password: 'the password of mayfly itself' }
    await ask('PUT', `/users/${login.username}`, { password: login.password, tags: 'administrator' })
    const amqpUrl = `amqp://127.0.0.1:${amqp}`
    const settings: Config = { ...login, url, vhosts: ['/'], local: true, amqp_url: amqpUrl }
    return { url, amqpUrl, mqttPort, stompPort, settings, api: ask, env, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function answers(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect').finally(() => socket.destroy())
}

function asking(base: string): RabbitServer['api'] {
  const authorization = `Basic ${Buffer.from('guest:guest').toString('base64')}`
  return async (method, path, body) => {
    const headers = { authorization, 'content-type': 'application/json' }
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${base}${path}`, { method, headers, ...content })
    const text = await response.text()
    if (response.status > 299 && response.status !== 404) throw new Error(`${response.status} ${text}`)
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  // Nothing of it is kept.
  process.kill(-child.pid, 'SIGKILL')
  await ended
}
