import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { runCli, startWorld, type World } from './support.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })

describe('backend try', () => {
  test('shows each step, and says what is left of the credential', async () => {
    const name = await world.app.newBackend()
    const ended = await mayfly('backend', 'try', name)
    expect([ended.code, ended.stdout.replace(/ +/g, ' ').replace(/\d+ ms/g, 'N ms')]).toEqual([
      0,
      'STEP RESULT TIME DETAIL\ncheck ok N ms\nissue ok N ms\n',
    ])
    expect(ended.stderr).toMatch(/cannot end a credential early: .* Nobody has its secret/)
  })

  test('takes scopes, and answers JSON', async () => {
    const name = await world.app.newBackend()
    const ended = await mayfly('backend', 'try', name, '--scope', 'a:read', '--scope', 'b:read', '--json')
    expect(JSON.parse(ended.stdout)).toMatchObject({ name, scopes: ['a:read', 'b:read'], ended: false })
    expect(ended.stderr).toBe('')
  })

  test('ends with 1 where a step fails, and says why', async () => {
    const config = { host: '127.0.0.1', port: await freePort(), database: 'd', username: 'u', local: true }
    const body = { type: 'postgres', name: 'gone', config }
    expect((await world.app.admin('POST', '/v1/admin/backends?check=false', body)).status).toBe(200)
    const ended = await mayfly('backend', 'try', 'gone')
    expect([ended.code, ended.stdout]).toEqual([1, expect.stringMatching(/check +refused .*ECONNREFUSED/)])
  })

  test('wrong usage, and a backend that is not there', async () => {
    expect((await mayfly('backend', 'try')).code).toBe(2)
    const ended = await mayfly('backend', 'try', 'nothing')
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining('no such backend')])
  })
})
