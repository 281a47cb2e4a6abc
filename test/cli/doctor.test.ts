import { spawnSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkNode } from '../../src/operations/doctor/local.ts'
import { startApp } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { newAuthority } from './certificates.ts'
import { type CliWish, newHome, runCli, startWorld, type World } from './support.ts'

interface Finding {
  check: string
  level: string
  message: string
  fix?: string
}

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

async function doctor(wish: CliWish, ...argv: string[]) {
  const { code, stdout } = await runCli(['doctor', '--json', ...argv], wish)
  const findings: Finding[] = JSON.parse(stdout)
  return { code, findings, of: (check: string) => findings.find((one) => one.check === check) }
}

test('all is well: exit 0, every line with its level', async () => {
  const env = { ...world.env, MAYFLY_DATA_DIR: world.app.directory }
  const { code, findings } = await doctor({ env })
  expect(code).toBe(0)
  expect(findings.map(({ check, level }) => [check, level])).toEqual([
    ['node', 'ok'],
    ['server', 'ok'],
    ['clock', 'ok'],
    ['version', 'ok'],
    ['tls', 'ok'],
    ['login', 'ok'],
    ['admin', 'ok'],
    ['files', 'ok'],
    ['keychain', 'ok'],
    ['data directory', 'ok'],
    ['git', 'ok'],
  ])
  const { stdout } = await runCli(['doctor'], { env })
  expect(stdout).toMatch(/^ok {4}login {11}The login works: agent \S+, from the environment\.$/m)
  expect(stdout).not.toContain(world.agent.token)
})

describe('finds problems and says how to fix them', () => {
  test.runIf(process.platform === 'linux')('a server that other machines reach without TLS', async () => {
    const open = await startApp({ argv: { listen: '0.0.0.0:0' } })
    try {
      const server = `http://127.0.0.1:${new URL(open.url).port}`
      const { of } = await doctor({ env: { ...world.env, MAYFLY_SERVER: server } })
      expect(of('tls')).toMatchObject({
        level: 'warn',
        message: 'The server listens at every address of this machine, without TLS.',
      })
    } finally {
      await open.close()
    }
  })

  test('no server', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    const { code, of } = await doctor({ env: { ...world.env, MAYFLY_SERVER: url } })
    expect(code).toBe(1)
    expect(of('server')).toEqual({
      check: 'server',
      level: 'fail',
      message: `Cannot reach ${url}: nothing is listening there.`,
      fix: expect.stringContaining('mayfly server'),
    })
    expect(of('files')?.level).toBe('ok')
  })

  test('a malformed address', async () => {
    const { code, of } = await doctor({ env: { ...world.env, MAYFLY_SERVER: 'nonsense' } })
    expect([code, of('server')?.level]).toEqual([1, 'fail'])
  })

  test('a clock that is off, both ways', async () => {
    const ahead = await doctor({ env: world.env, ahead: 120_000 })
    expect(ahead.code).toBe(1)
    expect(ahead.of('clock')).toMatchObject({
      level: 'fail',
      message: expect.stringMatching(/1(?:19|20) s ahead/),
    })
    const behind = await doctor({ env: world.env, ahead: -10_000 })
    expect(behind.of('clock')).toMatchObject({
      level: 'warn',
      message: expect.stringMatching(/(?:9|10) s behind/),
    })
    expect(behind.code).toBe(0)
  })

  test('a wrong login, and a missing one', async () => {
    const wrong = await doctor({ env: { ...world.env, MAYFLY_TOKEN: 'ckr_'.padEnd(52, '0') } })
    expect(wrong.code).toBe(1)
    expect(wrong.of('login')).toMatchObject({ level: 'fail', fix: expect.stringContaining('mayfly login') })
    const none = await doctor({ env: { ...world.bareEnv, MAYFLY_SERVER: world.url } })
    expect([none.code, none.of('login')?.level]).toEqual([0, 'warn'])
  })

  test('an agent that ends soon', async () => {
    const short = await world.app.newAgent({ expires_in: '1h' })
    const { of } = await doctor({ env: { ...world.env, MAYFLY_TOKEN: short.token } })
    expect(of('login')).toMatchObject({ level: 'warn', message: expect.stringContaining('expires at') })
  })

  test('another version, and one that is not ready', async () => {
    const server = createServer((request, reply) => {
      const isHealth = request.url === '/health'
      reply.writeHead(isHealth ? 200 : 503, { 'content-type': 'application/json', 'retry-after': '0' })
      reply.end(
        JSON.stringify(
          isHealth
            ? { status: 'ok', version: '0.0.1' }
            : { error: { code: 'store_unavailable', message: 'Not ready: the disk is full.' } },
        ),
      )
    })
    const port = await freePort()
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    try {
      const { code, of } = await doctor({ env: { ...world.env, MAYFLY_SERVER: `http://127.0.0.1:${port}` } })
      expect(of('version')).toMatchObject({ level: 'warn', message: expect.stringContaining('0.0.1') })
      expect(of('readiness')).toMatchObject({ level: 'fail', message: 'Not ready: the disk is full.' })
      expect(code).toBe(1)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test('certificates: trusted, soon at their end, expired, of an authority that is unknown', async () => {
    const { home, env: bare } = await newHome()
    const authority = await newAuthority(home)
    const look = async (daysLeft: number, ...argv: string[]) => {
      const { certFile, keyFile } = await authority.issue({
        name: `left-${daysLeft}`,
        ips: ['127.0.0.1'],
        daysLeft,
      })
      const app = await startApp({ argv: { tlsCertFile: certFile, tlsKeyFile: keyFile } })
      try {
        const env = { ...bare, MAYFLY_SERVER: app.url.replace('http:', 'https:') }
        return await doctor({ env }, ...argv)
      } finally {
        await app.close()
      }
    }
    const trusted = await look(25, '--ca', authority.caFile)
    expect(trusted.of('tls')).toMatchObject({
      level: 'ok',
      message: expect.stringMatching(/valid for 2[45] days/),
    })
    const soon = await look(5, '--ca', authority.caFile)
    expect([soon.code, soon.of('tls')]).toEqual([
      0,
      expect.objectContaining({ level: 'warn', fix: 'Renew it.' }),
    ])
    const expired = await look(-1, '--ca', authority.caFile)
    expect(expired.of('server')).toMatchObject({ level: 'fail', fix: expect.stringContaining('Renew') })
    const unknown = await look(25)
    expect([unknown.code, unknown.of('server')?.fix]).toEqual([1, expect.stringContaining('--ca FILE')])
  })

  test('reports files that other users can read', async () => {
    const { home, env: bare } = await newHome()
    const directory = join(home, 'config', 'mayfly')
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await writeFile(join(directory, 'config.json'), '{"profiles":{}}', { mode: 0o644 })
    await writeFile(join(home, 'token'), `${world.agent.token}\n`, { mode: 0o644 })
    const env = { ...bare, MAYFLY_SERVER: world.url, MAYFLY_TOKEN_FILE: join(home, 'token') }
    const bad = await doctor({ env })
    const fixes = bad.findings.filter(({ level }) => level === 'fail').map(({ fix }) => fix ?? '')
    expect(bad.code).toBe(1)
    // The suggested commands fix the problems.
    for (const fix of fixes.filter((one) => one.startsWith('Run: ')))
      expect(spawnSync('sh', ['-c', fix.slice('Run: '.length)]).status).toBe(0)
    expect((await doctor({ env })).code).toBe(0)
  })

  test('a data directory that others can read, or that is not there', async () => {
    const { home, env: bare } = await newHome()
    const open = join(home, 'data-of-server')
    await mkdir(open)
    await chmod(open, 0o755)
    const env = { ...bare, MAYFLY_SERVER: world.url }
    expect((await doctor({ env }, '--data-dir', open)).of('data directory')).toMatchObject({ level: 'fail' })
    const none = await doctor({ env }, '--data-dir', join(home, 'none'))
    expect(none.of('data directory')).toMatchObject({ level: 'warn' })
  })

  test('a keychain that is locked', async () => {
    const { home, env: bare } = await newHome()
    const bin = join(home, 'bin')
    await mkdir(bin)
    await writeFile(join(bin, 'secret-tool'), '#!/bin/sh\necho locked >&2\nexit 1\n', { mode: 0o755 })
    const env = {
      ...bare,
      PATH: `${bin}:${bare['PATH']}`,
      MAYFLY_KEYCHAIN: '',
      DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere',
      MAYFLY_SERVER: world.url,
    }
    const { code, of } = await doctor({ env })
    expect([code, of('keychain')?.level]).toEqual([1, 'fail'])
    expect((await doctor({ env }, '--no-keychain')).code).toBe(0)
  })

  test('git: set up for a program that is gone, and no git at all', async () => {
    const { home, env: bare } = await newHome()
    const env = { ...bare, MAYFLY_SERVER: world.url, GIT_CONFIG_GLOBAL: join(home, 'gitconfig') }
    const login = { ...env, MAYFLY_TOKEN: world.agent.token }
    expect((await runCli(['git', 'setup', '--global'], { env: login })).stderr).not.toMatch(/^mayfly: /m)
    expect((await doctor({ env })).of('git')).toMatchObject({
      level: 'ok',
      message: expect.stringContaining('signing'),
    })
    spawnSync('git', ['config', '--global', 'gpg.program', join(home, 'gone')], { env })
    expect((await doctor({ env })).of('git')).toMatchObject({
      level: 'fail',
      fix: expect.stringContaining('git setup'),
    })
    const without = await doctor({ env: { ...env, PATH: home } })
    expect(without.of('git')).toMatchObject({ level: 'warn', message: 'git is not in the PATH.' })
  })

  test('an old Node.js', () => {
    expect(checkNode('22.3.0').level).toBe('fail')
    expect(checkNode('24.0.0').level).toBe('ok')
  })
})
