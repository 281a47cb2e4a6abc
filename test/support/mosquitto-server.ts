import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../src/backends/mqtt/config.ts'
import { makeCertificates } from './certificates.ts'
import { freePort } from './free-port.ts'
import { type ProgramEnd, run } from './run-program.ts'

/** Debian installs servers in a directory that only root's PATH includes. */
const env = { PATH: `${process.env['PATH']}:/usr/sbin` }

export interface MosquittoServer {
  /** A configuration for the client that may administer the plugin. */
  readonly settings: Config
  /** A listener with TLS, and the authority that signed its certificate. */
  readonly tls: { readonly url: string; readonly ca: string }
  /** `mosquitto_ctrl dynsec …`, past the kind. */
  control(...args: string[]): Promise<ProgramEnd>
  /** Changes a default of the plugin; mosquitto_ctrl 2.0.11 has the command, but it has no effect. */
  setDefault(acltype: string, allow: boolean): Promise<void>
  /** Ends the process and starts it again, with what it has stored. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** A broker with the dynamic security plugin, on ports and in a directory of its own. */
export async function startMosquitto(): Promise<MosquittoServer> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-mosquitto-'))
  const at = (name: string) => join(directory, name)
  const { server } = makeCertificates(directory)
  const login = { username: 'mayfly', password: 'the password of mayfly itself' }
  execFileSync('mosquitto_ctrl', ['dynsec', 'init', at('dynsec.json'), login.username, login.password], {
    env,
  })
  // As the page of the kind says: `init` leaves it open.
  const file = await readFile(at('dynsec.json'), 'utf8')
  await writeFile(at('dynsec.json'), file.replace(/("publishClientReceive":\s*)true/, '$1false'))
  const { broker, port, tlsPort } = await startOnFreePorts(
    (port, tlsPort) => `
allow_anonymous false
plugin ${pluginFile()}
plugin_opt_config_file ${at('dynsec.json')}
listener ${port} 127.0.0.1
listener ${tlsPort} 127.0.0.1
certfile ${at('server.pem')}
keyfile ${at('server.key')}
`,
  )
  const options = ['-h', '127.0.0.1', '-p', String(port), '-u', login.username, '-P', login.password]
  return {
    settings: { ...login, url: `mqtt://127.0.0.1:${port}`, local: true },
    tls: { url: `mqtts://localhost:${tlsPort}`, ca: server.ca },
    control: (...args) => run(['mosquitto_ctrl', ...options, 'dynsec', ...args], env),
    async setDefault(acltype, allow) {
      const control = '$CONTROL/dynamic-security/v1'
      const command = { command: 'setDefaultACLAccess', acls: [{ acltype, allow }] }
      const message = JSON.stringify({ commands: [command] })
      const asked = ['-t', control, '-e', `${control}/response`, '-m', message]
      const { stdout } = await run(['mosquitto_rr', ...options, ...asked], env)
      if (!stdout.includes('setDefaultACLAccess') || stdout.includes('error')) throw new Error(stdout)
    },
    restart: broker.restart,
    async stop() {
      await broker.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** How often another process may take a free port before the broker does. */
const TRIES = 5

async function startOnFreePorts(textFor: (port: number, tlsPort: number) => string) {
  for (let tries = 1; ; tries += 1) {
    const [port, tlsPort] = [await freePort(), await freePort()]
    try {
      return { broker: await startMosquittoWith(textFor(port, tlsPort)), port, tlsPort }
    } catch (error) {
      if (!(error instanceof BrokerEnded) || tries === TRIES) throw error
    }
  }
}

class BrokerEnded extends Error {
  override readonly message = 'mosquitto has ended'
}

/** A broker with this configuration. */
export async function startMosquittoWith(text: string): Promise<Pick<MosquittoServer, 'restart' | 'stop'>> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-mosquitto-'))
  const file = join(directory, 'mosquitto.conf')
  await writeFile(file, `user root\n${text}`)
  const start = () => spawn('mosquitto', ['-c', file], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let child = start()
  /** It says so once it listens. Throws `BrokerEnded`, for instance if somebody else has its port. */
  const isUp = () =>
    new Promise<void>((resolve, reject) => {
      let said = ''
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text
        if (/ running$/m.test(said)) resolve()
      })
      child.once('error', reject)
      child.once('exit', () => reject(new BrokerEnded()))
    })
  const end = async () => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  const stop = async () => {
    await end()
    await rm(directory, { recursive: true, force: true })
  }
  await isUp().catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return {
    async restart() {
      await end()
      child = start()
      await isUp()
    },
    stop,
  }
}

export function pluginFile(): string {
  const directories = readdirSync('/usr/lib').map((name) => `/usr/lib/${name}`)
  const files = directories.map((directory) => `${directory}/mosquitto_dynamic_security.so`)
  const file = files.find(existsSync)
  if (file === undefined) throw new Error('no dynamic security plugin of mosquitto')
  return file
}
