import { setTimeout as pause } from 'node:timers/promises'
import { forkHere, stop } from './processes.ts'
import type { OurServer } from './server.ts'
import type { LeftTokens } from './slow-api.ts'

/** What the backends of the bench give access to. */
export const CONFIG = 'app/prd'

export interface SlowApi {
  readonly port: number
  /** Resolves with the time of the last deletion when no token is left. */
  gone(): Promise<number>
  stop(): Promise<void>
}

/** Starts `slow-api.ts`, which answers each request after `delayMs`. */
export async function startSlowApi(delayMs: number): Promise<SlowApi> {
  const child = forkHere('slow-api.ts')
  const ask = <T>(message: object): Promise<T> =>
    new Promise((resolve, reject) => {
      const ended = () => reject(new Error('the slow upstream ended early'))
      child.once('exit', ended)
      child.once('message', (reply: T) => {
        child.off('exit', ended)
        resolve(reply)
      })
      child.send(message)
    })
  const { port } = await ask<{ port: number }>({ delayMs })
  return {
    port,
    async gone() {
      for (;;) {
        const { left, lastAt } = await ask<LeftTokens>({})
        if (left === 0) return lastAt
        await pause(100)
      }
    },
    stop: () => stop(child),
  }
}

/** A backend at an HTTP upstream. */
export interface Far {
  readonly name: string
  readonly host: string
  readonly port: number
}

/** Adds the backend. Returns the bearer token of an agent that may use it. */
export async function addFar(server: OurServer, { name, host, port }: Far): Promise<string> {
  const config = {
    base_url: `http://${host}:${port}`,
    token: 'dp.sa.of-the-bench',
    configs: [CONFIG],
    local: true,
  }
  await server.admin('POST', '/v1/admin/backends?check=false', { type: 'doppler', name, config })
  const { token } = await server.admin<{ token: string }>('POST', '/v1/admin/agents', {
    name: `of-${name}`,
    scopes: [`${name}:*`],
  })
  return token
}
