import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { joinedMain } from '../support/joined-main.ts'
import { poll, type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { newHome, runCli } from './support.ts'

const canOpenTerminal =
  process.platform === 'linux' && spawnSync('python3', ['-c', 'import pty']).status === 0
/** Runs a program on a terminal that controls it, closes the terminal once the program listens, and prints its exit code. */
const TERMINAL = `
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[1], sys.argv[1:])
shown = b''
while b'"listening"' not in shown: shown += os.read(terminal, 4096)
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`

let home: string
let env: Record<string, string>
let dataDir: string
let file: string
let server: ServerProcess
beforeAll(async () => {
  ;({ home, env } = await newHome())
})
afterEach(() => server?.terminate())
afterAll(() => rm(home, { recursive: true, force: true }))

const policy = (name: string) => `policies: [{ name: ${name}, pattern: "${name}-*", scopes: [demo] }]\n`
const write = (text: string) => writeFile(file, `data_dir: ${dataDir}\n${text}`)

async function start(text: string): Promise<void> {
  dataDir = await mkdtemp(join(tmpdir(), 'mayfly-reload-'))
  file = join(dataDir, 'mayfly.yaml')
  await write(text)
  // Without a terminal, as systemd starts it.
  server = await startServerProcess({ dataDir, flags: ['--config', file], by: ['setsid'] })
}

const policies = async () =>
  (await server.call<{ name: string }[]>(undefined, 'GET', '/v1/admin/policies')).body.map(({ name }) => name)
const reload = (...more: string[]) =>
  runCli(['server', 'reload', '--config', file, ...more], { env, cwd: home })

describe('mayfly server reload', () => {
  test('prints what has changed, and ends with 0', async () => {
    await start(policy('one'))
    await write(policy('two'))
    expect(await reload()).toEqual({ code: 0, stdout: 'Reloaded. Changed: policies.\n', stderr: '' })
    expect(await policies()).toEqual(['two'])
    const again = await reload('--json')
    expect(JSON.parse(again.stdout)).toEqual({ changed: [], skipped: [], faults: [] })
    expect(await reload()).toMatchObject({ stdout: 'Reloaded. Nothing has changed.\n' })
  })

  test('prints a fault with its line, and ends with 1', async () => {
    await start(policy('one'))
    await write(`${policy('two')}log_level: loud\n`)
    const { code, stderr } = await reload()
    expect(code).toBe(1)
    expect(stderr).toContain(`${file}:3:12: log_level must be one of`)
    expect(await policies()).toEqual(['one'])
  })

  test('names a change that needs a restart, changes nothing else, and ends with 1', async () => {
    await start(policy('one'))
    await write(`${policy('two')}retention: 30d\n`)
    const { code, stderr, stdout } = await reload()
    expect({ code, stdout }).toEqual({ code: 1, stdout: 'Nothing was reloaded.\n' })
    expect(stderr).toBe(
      `mayfly: ${file}:3:12: retention has changed, which takes effect only with a restart\n`,
    )
    expect(await policies()).toEqual(['one'])
    expect(server.logged()).toContain('"level":"error"')
  })

  test('says that no server answers', async () => {
    await start('')
    await server.terminate()
    expect(await reload()).toMatchObject({ code: 3, stderr: expect.stringContaining('No server answers') })
  })
})

describe('SIGHUP', () => {
  test('without a terminal it reloads; a fault changes nothing, and the server goes on', async () => {
    await start(policy('one'))
    await write(policy('two'))
    server.signal('SIGHUP')
    await poll('the reload', async () => (await policies()).includes('two'))
    await write('nonsense: 1\n')
    server.signal('SIGHUP')
    await poll('the fault', () => server.logged().includes('nothing was reloaded'))
    expect(server.logged()).toContain(`${file}:2:1`)
    expect(await policies()).toEqual(['two'])
    expect(server.hasEnded()).toBe(false)
  })

  test.skipIf(!canOpenTerminal)('of a terminal that closes ends the server, as before', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'mayfly-terminal-'))
    const line = [
      process.execPath,
      joinedMain(),
      'server',
      '--data-dir',
      directory,
      '--listen',
      '127.0.0.1:0',
    ]
    const { stdout } = await promisify(execFile)('python3', ['-c', TERMINAL, ...line], {
      env: { ...env, INVOCATION_ID: 'test' },
    })
    expect(stdout).toBe('0\n')
    await rm(directory, { recursive: true })
  })
})
