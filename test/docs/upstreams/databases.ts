import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { startMariadb } from '../../support/mariadb-server.ts'
import { startRedis } from '../../support/redis-server.ts'
import type { StartUpstream } from '../backend-page.ts'
import type { StepResult } from '../run-guide.ts'
import { startShop } from '../shop.ts'

const showsLamp = async (results: readonly StepResult[]) => expect(results.at(-1)?.output).toContain('lamp')

export const postgres: StartUpstream = async () => {
  const shop = await startShop()
  return {
    env: shop.env,
    replace: [['--host db.example.com', `--host 127.0.0.1 --port ${shop.port} --local`]],
    verify: showsLamp,
    stop: shop.stop,
  }
}

export const mysql: StartUpstream = async ({ cwd }) => {
  const server = await startMariadb(['--performance-schema=ON'])
  await server.sql('CREATE DATABASE shop')
  await server.sql("CREATE TABLE shop.items AS SELECT 'lamp' AS name")
  // The administrator's own client, and Mayfly's command beside it.
  const client = join(cwd, 'client')
  await writeFile(client, `[client]\nhost=127.0.0.1\nport=${server.port}\nuser=root\n`)
  return {
    replace: [
      ['mariadb <<', `mariadb --defaults-file=${client} <<`],
      ['--host db.example.com', `--host 127.0.0.1 --port ${server.port} --local`],
    ],
    verify: showsLamp,
    stop: server.stop,
  }
}

export const redis: StartUpstream = async () => {
  const server = await startRedis([])
  await server.call('SET', 'shop:1', 'lamp')
  return {
    replace: [
      ['redis-cli ACL', `redis-cli -p ${server.port} --user root --pass root-password ACL`],
      ['--host cache.example.com', `--host 127.0.0.1 --port ${server.port} --local`],
    ],
    verify: showsLamp,
    stop: server.stop,
  }
}

/** A resource server. */
export const jwt: StartUpstream = async () => {
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization ?? '')
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    replace: [['https://orders.example.com', address]],
    verify: async () => expect(seen).toEqual([expect.stringMatching(/^Bearer ey/)]),
    stop: async () => {
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
