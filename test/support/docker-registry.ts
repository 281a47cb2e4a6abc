import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { freePort } from './free-port.ts'

const START_MS = 30_000

export interface DockerRegistry {
  /** `127.0.0.1:port`, also its `service`. */
  readonly host: string
  /** An image to push, as skopeo names it. */
  readonly image: string
  readonly directory: string
  /** Starts it, or starts it again, with another certificate to trust. */
  start(trust: {
    readonly issuer: string
    readonly certificate: string
    /** Where programs get tokens. Default: nowhere. */
    readonly realm?: string
  }): Promise<void>
  /** The same with the key `auth` of its configuration. */
  startWith(auth: Readonly<Record<string, unknown>>): Promise<void>
  close(): Promise<void>
}

/** Debian's docker-registry (Distribution), which asks for tokens. It runs once `start` was called. */
export async function createDockerRegistry(): Promise<DockerRegistry> {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-registry-'))
  const host = `127.0.0.1:${await freePort()}`
  await writeImage(join(directory, 'image'))
  let child: ChildProcess | undefined

  async function stop(): Promise<void> {
    if (child === undefined || child.exitCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  const startWith: DockerRegistry['startWith'] = async (auth) => {
    await stop()
    const settings = {
      version: 0.1,
      log: { level: 'warn', accesslog: { disabled: true } },
      storage: {
        filesystem: { rootdirectory: join(directory, 'data') },
        delete: { enabled: true },
      },
      http: { addr: host, secret: 'tests' },
      auth,
    }
    // YAML is a superset of JSON.
    await writeFile(join(directory, 'config.yml'), JSON.stringify(settings))
    child = spawn('docker-registry', ['serve', join(directory, 'config.yml')], { stdio: 'ignore' })
    const until = Date.now() + START_MS
    while (!(await answers(host))) {
      if (Date.now() > until || child.exitCode !== null) throw new Error('docker-registry does not start')
      await delay(50)
    }
  }
  return {
    host,
    directory,
    image: `oci:${join(directory, 'image')}:latest`,
    async start({ issuer, certificate, realm = 'https://mayfly.test/token' }) {
      const rootcertbundle = join(directory, 'tokens.pem')
      await writeFile(rootcertbundle, certificate)
      await startWith({
        token: { realm, service: host, issuer, rootcertbundle },
      })
    },
    startWith,
    async close() {
      await stop()
      await rm(directory, { recursive: true })
    },
  }
}

const answers = (host: string) =>
  fetch(`http://${host}/v2/`).then(
    ({ status }) => status === 401,
    () => false,
  )

/** The smallest image: one layer, an archive without files (OCI Image Layout Specification 1.0). */
async function writeImage(directory: string): Promise<void> {
  const blobs = join(directory, 'blobs', 'sha256')
  await mkdir(blobs, { recursive: true })
  const put = async (mediaType: string, content: Buffer | string) => {
    const digest = createHash('sha256').update(content).digest('hex')
    await writeFile(join(blobs, digest), content)
    return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(content) }
  }
  const archive = Buffer.alloc(1_024)
  const diff = `sha256:${createHash('sha256').update(archive).digest('hex')}`
  const layer = await put('application/vnd.oci.image.layer.v1.tar+gzip', gzipSync(archive))
  const rootfs = { type: 'layers', diff_ids: [diff] }
  const about = JSON.stringify({ architecture: 'amd64', os: 'linux', config: {}, rootfs })
  const config = await put('application/vnd.oci.image.config.v1+json', about)
  const type = 'application/vnd.oci.image.manifest.v1+json'
  const manifest = await put(
    type,
    JSON.stringify({ schemaVersion: 2, mediaType: type, config, layers: [layer] }),
  )
  const named = { ...manifest, annotations: { 'org.opencontainers.image.ref.name': 'latest' } }
  await writeFile(join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [named] }))
  await writeFile(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
}
