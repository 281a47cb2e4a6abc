import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { recordsOf } from '../cli/run-support.ts'
import { startWorld } from '../cli/support.ts'
import { freePort } from '../support/free-port.ts'
import { installServer } from './installed-server.ts'
import { installMayfly, runGuide } from './run-guide.ts'
import { startShop } from './shop.ts'

let home: string
let env: Record<string, string>
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-start-'))
  const bin = join(home, 'bin')
  await installMayfly(bin)
  env = {
    HOME: home,
    PATH: `${bin}:${process.env['PATH']}`,
    LANG: 'C.UTF-8',
    PAGER: 'cat',
    MAYFLY_KEYCHAIN: 'off',
  }
})
afterEach(() => rm(home, { recursive: true, force: true }))

/** Runs a page that starts a server of its own. */
async function runPage(path: string, more: { env?: object; ports?: readonly [string, number][] } = {}) {
  const ports = [['8700', await freePort()], ['8701', await freePort()], ...(more.ports ?? [])] as const
  return runGuide(path, {
    env: { ...env, ...more.env },
    cwd: home,
    replace: [...ports.map(([port, here]) => [port, String(here)] as const), ['/home/you', home]],
  })
}

/** An `npm` that installs nothing and starts the server of this checkout with the flags of `npm start`. */
async function installNpm(): Promise<void> {
  const { scripts } = JSON.parse(
    await readFile(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'),
  )
  const [, flags] = /main\.(?:js|ts) (server .*)$/.exec(scripts.start) ?? []
  expect(flags).toContain('--quickstart')
  const path = join(home, 'bin', 'npm')
  await writeFile(path, `#!/bin/sh\n[ "$1" = ci ] || exec mayfly ${flags}\n`)
  await chmod(path, 0o755)
}

test('README.md works as shown', async () => {
  const shop = await startShop()
  try {
    await installNpm()
    const port = await freePort()
    const address = `127.0.0.1:${port}`
    await runPage('README.md', {
      env: { ...shop.env, MAYFLY_LISTEN: address, MAYFLY_SERVER: `http://${address}` },
      ports: [
        ['8620', port],
        ['5432', shop.port],
      ],
    })
  } finally {
    await shop.stop()
  }
})

test('docs/start/first-steps.md works as shown', async () => {
  await runPage('docs/start/first-steps.md')
})

test('docs/start/laptop.md works as shown', async () => {
  await runPage('docs/start/laptop.md')
})

test('docs/start/team.md works as shown', async () => {
  const server = await installServer()
  try {
    await server.runPage('docs/start/team.md')
  } finally {
    await server.close()
  }
})

test('docs/start/ci-only.md works as shown', async () => {
  const world = await startWorld()
  try {
    await runGuide('docs/start/ci-only.md', {
      env: { ...env, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory },
      cwd: home,
      replace: [['https://mayfly.example.com', world.url]],
    })
    expect(await recordsOf(world, { name: 'ci-publish' })).toMatchObject([{ status: 'revoked' }])
  } finally {
    await world.close()
  }
})

test('docs/start/when-something-goes-wrong.md works as shown', async () => {
  await runPage('docs/start/when-something-goes-wrong.md')
})

test('docs/start/first-postgresql-credential.md works as shown', async () => {
  const shop = await startShop()
  try {
    await runPage('docs/start/first-postgresql-credential.md', {
      env: shop.env,
      ports: [['5432', shop.port]],
    })
  } finally {
    await shop.stop()
  }
})
