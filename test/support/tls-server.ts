import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Issued } from '../../src/backends/kind.ts'
import { eventually } from './app.ts'
import { freePort } from './free-port.ts'

const run = promisify(execFile)

/** What nginx made of the client's certificate: `$ssl_client_verify` and others. */
export interface TlsAnswer {
  readonly status: number
  /** `SUCCESS`, `NONE` or `FAILED:reason`. */
  readonly verify: string
  readonly subject: string
  readonly serial: string
}

export interface TlsServer {
  readonly directory: string
  /** Without `issued`, without a certificate. `key`: PEM, where the credential has none. */
  request(issued?: Pick<Issued, 'fields'>, key?: string): Promise<TlsAnswer>
  /** Replaces the revocation list (DER) and reloads, as its administrator would. */
  revoke(list: Uint8Array): Promise<void>
  stop(): Promise<void>
}

/** An nginx that asks for certificates of this CA and checks its revocation list. */
export async function startTlsServer(ca: string, list: Uint8Array): Promise<TlsServer> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-nginx-'))
  const at = (name: string) => join(directory, name)
  await writeFile(at('ca.crt'), ca)
  // What an administrator runs to fetch the list: nginx wants PEM.
  const writeList = async (der: Uint8Array) => {
    await writeFile(at('crl.der'), der)
    await run('openssl', ['crl', '-inform', 'DER', '-in', at('crl.der'), '-out', at('crl.pem')])
  }
  await writeList(list)
  const { port, reload, ...nginx } = await startNginx(directory, asksFor(directory))
  const trusted = await readFile(at('server.crt'), 'utf8')
  const ask = (issued?: Pick<Issued, 'fields'>, key?: string): Promise<TlsAnswer> => {
    const { certificate, private_key: own } = issued?.fields ?? {}
    return new Promise((resolve, reject) => {
      const outgoing = request(`https://localhost:${port}/`, {
        ...{ agent: false, ca: trusted, family: 4 },
        ...(certificate !== undefined && {
          cert: String(certificate),
          key: own === undefined ? key : String(own),
        }),
      })
      outgoing.once('error', reject)
      outgoing.once('response', (response) => {
        response.resume()
        const header = (name: string) => String(response.headers[name] ?? '')
        const [verify, subject, serial] = ['x-verify', 'x-subject', 'x-serial'].map(header)
        const status = response.statusCode ?? 0
        resolve({ status, verify: verify ?? '', subject: subject ?? '', serial: serial ?? '' })
      })
      outgoing.end()
    })
  }
  return {
    directory,
    request: ask,
    async revoke(der) {
      await writeList(der)
      reload()
    },
    async stop() {
      await nginx.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const asksFor = (directory: string) => `
    ssl_client_certificate ${directory}/ca.crt;
    ssl_crl ${directory}/crl.pem;
    ssl_verify_client optional;
`

export interface Nginx {
  readonly port: number
  reload(): void
  stop(): Promise<void>
}

/**
 * An nginx that replies with what it made of the client's certificate. Its files are in the directory: `nginx.conf`, and
 * `server.crt`, which clients must trust for `localhost`.
 */
export async function startNginx(directory: string, settings: string): Promise<Nginx> {
  const at = (name: string) => join(directory, name)
  const port = await freePort()
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
    ...['-keyout', at('server.key'), '-out', at('server.crt')],
  ])
  await writeFile(at('nginx.conf'), nginxConfig(directory, port, settings))
  // Debian installs servers in a directory that only root's PATH includes.
  const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` }
  const child = spawn('nginx', ['-c', at('nginx.conf'), '-e', at('error.log')], { stdio: 'ignore', env })
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(await readFile(at('error.log'), 'utf8'))
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect').finally(() => socket.destroy())
  })
  return {
    port,
    reload: () => child.kill('SIGHUP'),
    async stop() {
      child.kill()
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

function nginxConfig(directory: string, port: number, settings: string): string {
  return `
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${directory}/nginx.pid;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${directory}/server.crt;
    ssl_certificate_key ${directory}/server.key;
    ssl_session_tickets off;
    ssl_session_cache off;
    ${settings}
    error_page 495 =400 /;
    location / {
      add_header x-verify $ssl_client_verify always;
      add_header x-subject $ssl_client_s_dn always;
      add_header x-serial $ssl_client_serial always;
      return 200;
    }
  }
}
`
}
