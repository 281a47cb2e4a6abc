import { randomBytes } from 'node:crypto'
import { createSecureServer } from 'node:http2'
import { join } from 'node:path'
import { newCertificate } from '../plugins/process/certificate.ts'
import { GRPCController } from '../plugins/proto/go_plugin_pb.ts'
import { Health } from '../plugins/proto/health_pb.ts'
import { Kind } from '../plugins/proto/mayfly_plugin_v1_pb.ts'
import type { DefinedKind } from './define-kind.ts'
import { createService } from './service.ts'
import { createUnaryServer } from './unary-server.ts'

const COOKIE = 'mayfly.plugin.v1'
const SERVING = 1
const MAX_REQUEST_BYTES = 1024 * 1024

/** Serves a kind to the Mayfly that started this process, until that ends it or ends itself. */
export function servePlugin(kind: DefinedKind): void {
  // biome-ignore lint/style/noProcessEnv: go-plugin's handshake is made of variables
  const { MAYFLY_PLUGIN, PLUGIN_UNIX_SOCKET_DIR, PLUGIN_CLIENT_CERT } = process.env
  if (MAYFLY_PLUGIN !== COOKIE || PLUGIN_UNIX_SOCKET_DIR === undefined || PLUGIN_CLIENT_CERT === undefined) {
    process.stderr.write(
      `This is a plugin of Mayfly (${kind.type}), and not to be started by hand. Add it to a server: mayfly plugin add FILE\n`,
    )
    process.exit(1)
  }
  const own = newCertificate(Date.now())
  const calls = createUnaryServer(MAX_REQUEST_BYTES)
  calls.add(Kind, createService(kind))
  calls.add(Health, { check: () => ({ status: SERVING }) })
  calls.add(GRPCController, {
    shutdown: () => {
      setImmediate(() => process.exit(0))
      return {}
    },
  })
  const server = createSecureServer({
    key: own.key,
    cert: own.certificate,
    // Only the server that started us has the key of this one.
    ca: PLUGIN_CLIENT_CERT,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
  })
  server.on('stream', calls.onStream)
  const path = join(PLUGIN_UNIX_SOCKET_DIR, `plugin${randomBytes(6).toString('hex')}`)
  server.listen(path, () => {
    const certificate = Buffer.from(own.raw).toString('base64').replace(/=+$/, '')
    process.stdout.write(`1|1|unix|${path}|grpc|${certificate}\n`)
  })
  endWithHost()
}

/** The host keeps our standard input open as long as it lives, however it ends. */
function endWithHost(): void {
  const end = () => process.exit(0)
  process.stdin.on('end', end).on('close', end).on('error', end).resume()
  process.on('SIGTERM', end)
}
