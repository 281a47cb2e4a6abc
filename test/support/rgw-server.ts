import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { eventually } from './app.ts'
import { freePort } from './free-port.ts'

const execute = promisify(execFile)
const AHEAD = fileURLToPath(new URL('./ahead.c', import.meta.url))

export interface RgwUser {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** A Ceph object gateway: a real STS, IAM and S3. */
export interface RgwOptions {
  /** PEM: listens with TLS, too. */
  readonly certificate?: { readonly cert: string; readonly key: string }
  /** Names by which clients call it, below which buckets are hosts. */
  readonly names?: readonly string[]
  /** What fits into it. */
  readonly bytes?: number
}

export interface RgwServer {
  readonly endpoint: string
  /** Of TLS; 0 where there is none. */
  readonly tlsPort: number
  /** May administer roles and OIDC providers, and owns what it creates. */
  readonly root: RgwUser
  createUser(name: string): Promise<RgwUser>
  /** Starts the gateway again, with a clock that is so far ahead of the machine's. */
  restartAhead(seconds: number): Promise<void>
  stop(): Promise<void>
}

const USER = {
  accessKeyId: 'ROOTACCESS0000000001',
  secretAccessKey: 'root-secret-root-secret-root-secret-0001',
}

/** A monitor, one OSD that keeps its data in memory, and the gateway, on free ports; some 15 seconds. */
export async function startRgw(options: RgwOptions = {}): Promise<RgwServer> {
  const home = await mkdtemp(join(tmpdir(), 'mayfly-rgw-'))
  const [monitorPort, port] = [await freePort(), await freePort()]
  const { certificate, names = [], bytes = 256 * 1024 * 1024 } = options
  const tlsPort = certificate === undefined ? 0 : await freePort()
  for (const folder of ['mon', 'osd', 'rgw', 'run']) await mkdir(join(home, folder))
  const conf = join(home, 'ceph.conf')
  const fsid = crypto.randomUUID()
  await writeFile(conf, configuration({ home, fsid, monitorPort, port, tlsPort, bytes }))
  if (certificate !== undefined) await writeFile(join(home, 'tls.pem'), certificate.key + certificate.cert)
  const children: ChildProcess[] = []
  const run = async (program: string, ...args: string[]) =>
    (await execute(program, ['-c', conf, ...args], { timeout: 60_000 })).stdout
  const start = (program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const options = { stdio: 'ignore', env: { ...process.env, ...env } } as const
    const child = spawn(program, ['-c', conf, ...args, '-f'], options)
    children.push(child)
    return child
  }
  const startGateway = async (env?: Readonly<Record<string, string>>) => {
    const child = start('radosgw', ['-n', 'client.rgw.a'], env)
    await answers(port)
    return child
  }
  // The monitor sometimes refuses a client that asks before it has learned the id of the cluster (EPERM, "wrong fsid"): `ceph`
  // fails, and an OSD exits. Both try again.
  const startOsd = (tries = 10) => {
    start('ceph-osd', ['-i', '0']).once('exit', () => {
      if (!isStopping && tries > 1) startOsd(tries - 1)
    })
  }
  let isStopping = false
  let gateway: ChildProcess | undefined
  const stop = async () => {
    isStopping = true
    for (const child of children.reverse()) {
      await kill(child)
    }
    await rm(home, { recursive: true, force: true })
  }
  try {
    const map = join(home, 'monmap')
    await execute('monmaptool', [
      '--create',
      '--fsid',
      fsid,
      '--addv',
      'a',
      `[v1:127.0.0.1:${monitorPort}]`,
      map,
    ])
    await run('ceph-mon', '--mkfs', '-i', 'a', '--monmap', map)
    start('ceph-mon', ['-i', 'a'])
    const osd = crypto.randomUUID()
    await eventually(() => run('ceph', 'osd', 'create', osd))
    await run('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', osd)
    startOsd()
    const { accessKeyId, secretAccessKey } = USER
    const login = ['--access-key', accessKeyId, '--secret', secretAccessKey]
    const caps = ['--caps', 'roles=*;oidc-provider=*;user-policy=*']
    await run('radosgw-admin', 'user', 'create', '--uid', 'root', '--display-name', 'root', ...login, ...caps)
    if (names.length > 0) {
      const file = join(home, 'zonegroup.json')
      const group = JSON.parse(await run('radosgw-admin', 'zonegroup', 'get'))
      await writeFile(file, JSON.stringify({ ...group, hostnames: names }))
      await run('radosgw-admin', 'zonegroup', 'set', '--infile', file)
    }
    gateway = await startGateway()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    endpoint: `http://127.0.0.1:${port}`,
    tlsPort,
    root: USER,
    async createUser(name) {
      const made = await run('radosgw-admin', 'user', 'create', '--uid', name, '--display-name', name)
      const [key] = JSON.parse(made).keys
      return { accessKeyId: key.access_key, secretAccessKey: key.secret_key }
    },
    async restartAhead(seconds) {
      if (gateway !== undefined) await kill(gateway)
      const library = join(home, 'ahead.so')
      await execute('cc', ['-shared', '-fPIC', '-O1', '-o', library, AHEAD, '-ldl'])
      gateway = await startGateway({ LD_PRELOAD: library, AHEAD_SECONDS: String(seconds) })
    },
    stop,
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  if (child.kill('SIGKILL')) await ended
}

/** Until it listens there is nothing to wait for but the next try. */
async function answers(port: number): Promise<void> {
  const end = Date.now() + 60_000
  for (;;) {
    const reply = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)
    if (reply?.ok) return
    if (Date.now() > end) throw new Error('the gateway did not start')
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

interface Settings {
  readonly home: string
  readonly fsid: string
  readonly monitorPort: number
  readonly port: number
  readonly tlsPort: number
  readonly bytes: number
}

const configuration = ({ home, fsid, monitorPort, port, tlsPort, bytes }: Settings) => `[global]
fsid = ${fsid}
mon host = v1:127.0.0.1:${monitorPort}
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
ms mon cluster mode = crc
ms mon service mode = crc
ms mon client mode = crc
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon max pg per osd = 2000
osd objectstore = memstore
memstore device bytes = ${bytes}
run dir = ${home}/run
admin socket = ${home}/run/$name.asok
log file = ${home}/$name.log
mon data = ${home}/mon
osd data = ${home}/osd
rgw data = ${home}/rgw
keyring = ${home}/keyring
public addr = 127.0.0.1
cluster addr = 127.0.0.1
setuser match path = ${home}
rgw sts key = abcdefghijklmnop
rgw s3 auth use sts = true
rgw frontends = beast endpoint=127.0.0.1:${port}${tlsPort === 0 ? '' : ` ssl_endpoint=127.0.0.1:${tlsPort} ssl_certificate=${home}/tls.pem ssl_private_key=${home}/tls.pem`}
`
