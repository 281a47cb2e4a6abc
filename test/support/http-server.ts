import { afterEach } from 'vitest'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../../src/http/server/server.ts'

export interface BuiltServer {
  readonly server: HttpServer
  readonly logged: { level: string; fields: Record<string, unknown>; message: string }[]
}

/** Builds servers without routes, each closed after its test. Request ids count from `req_1`. */
export function useHttpServers(): (options?: Partial<HttpServerOptions>) => BuiltServer {
  const open: HttpServer[] = []
  afterEach(async () => {
    // One that refused to boot also refuses to close.
    await Promise.allSettled(open.splice(0).map((server) => server.close()))
  })
  return (options = {}) => {
    const logged: BuiltServer['logged'] = []
    const log = (level: string) => (fields: Record<string, unknown>, message: string) => {
      logged.push({ level, fields, message })
    }
    let count = 0
    const server = createHttpServer({
      log: { error: log('error'), warn: log('warn'), debug: log('debug') },
      newRequestId: () => `req_${++count}`,
      ...options,
    })
    open.push(server)
    return { server, logged }
  }
}
