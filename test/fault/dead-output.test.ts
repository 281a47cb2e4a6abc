import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { callAdminSocket } from '../support/admin-socket.ts'
import { COMPILE_CACHE } from '../support/compile-cache.ts'
import { joinedMain } from '../support/joined-main.ts'
import { poll } from '../support/server-process.ts'

const canOpenTerminal =
  process.platform === 'linux' && spawnSync('python3', ['-c', 'import pty']).status === 0

/**
 * Opens a terminal, starts a program on it, and closes the terminal once a line comes on standard input. The program is
 * not in the terminal's session, as with setsid, so that no SIGHUP tells it. Its process id goes to standard output, and
 * its exit code becomes that of the script.
 */
const TERMINAL = `
import os, pty, subprocess, sys, threading
master, slave = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
os.close(slave)
print(child.pid, flush=True)
def show():
    try:
        while os.read(master, 4096): pass
    except OSError: pass
threading.Thread(target=show, daemon=True).start()
sys.stdin.readline()
os.dup2(os.open('/dev/null', os.O_RDONLY), master)
print('closed', flush=True)
sys.exit(child.wait())
`

let dataDir: string
let child: ChildProcess | undefined

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'mayfly-output-'))
})
afterEach(() => {
  child?.kill('SIGKILL')
  rmSync(dataDir, { recursive: true, force: true })
})

function start(
  stdio: ('ignore' | 'pipe' | number)[],
  { by = [], flags = [] }: { by?: readonly string[]; flags?: readonly string[] } = {},
) {
  const server = [
    process.execPath,
    joinedMain(),
    'server',
    '--data-dir',
    dataDir,
    '--listen',
    '127.0.0.1:0',
    ...flags,
  ]
  const [program = '', ...args] = [...by, ...server]
  child = spawn(program, args, {
    stdio,
    env: { PATH: process.env['PATH'], INVOCATION_ID: 'test', NODE_COMPILE_CACHE: COMPILE_CACHE },
  })
  return child
}

const isReady = async () =>
  existsSync(join(dataDir, 'admin.sock')) &&
  (await callAdminSocket(dataDir, 'GET', '/readyz', undefined)
    .then(({ status }) => status === 200)
    .catch(() => false))

const call = (method: string, path: string, body?: unknown, token?: string) =>
  callAdminSocket(
    dataDir,
    method,
    path,
    body,
    token === undefined ? {} : { authorization: `Bearer ${token}` },
  )

/** Returns a check that a server started again has what this one acknowledged. */
async function issueOne(): Promise<() => Promise<void>> {
  const backend = { type: 'jwt', name: 'tok', config: { audience: 'a' } }
  expect((await call('POST', '/v1/admin/backends', backend)).status).toBe(200)
  const agent = await call('POST', '/v1/admin/agents', { name: 'bot', scopes: ['tok'] })
  const issued = await call('POST', '/api/v1/credentials', { backend: 'tok' }, agent.body.token)
  expect(issued.status).toBe(201)
  return async () => {
    const again = start(['ignore', 'ignore', 'ignore'])
    await poll('the server is ready again', isReady)
    const kept = await call('GET', `/api/v1/credentials/${issued.body.id}`, undefined, agent.body.token)
    expect(kept.body).toMatchObject({ id: issued.body.id, status: 'active' })
    again.kill('SIGTERM')
    expect(await once(again, 'exit')).toEqual([0, null])
  }
}

describe.runIf(process.platform === 'linux')('a server whose output nobody can read', () => {
  test.runIf(canOpenTerminal)('works on and ends on SIGTERM after its terminal is gone', async () => {
    const terminal = start(['pipe', 'pipe', 'inherit' as never], { by: ['python3', '-c', TERMINAL] })
    const said = terminal.stdout?.setEncoding('utf8').iterator()
    const pid = Number((await said?.next())?.value)
    try {
      await poll('the server is ready', isReady)
      terminal.stdin?.write('\n')
      expect((await said?.next())?.value).toBe('closed\n')
      const checkKept = await issueOne()
      process.kill(pid, 'SIGTERM')
      expect(await once(terminal, 'exit')).toEqual([0, null])
      await checkKept()
    } finally {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {}
    }
  })

  test('works on and ends on SIGTERM after the reader of its pipe is gone', async () => {
    const server = start(['ignore', 'pipe', 'pipe'], { flags: ['--quickstart'] })
    server.stdout?.destroy()
    server.stderr?.destroy()
    await poll('the server is ready', isReady)
    await issueOne()
    server.kill('SIGTERM')
    expect(await once(server, 'exit')).toEqual([0, null])
  })

  test('works on and ends on SIGTERM while the disk of its log is full', async () => {
    const full = openSync('/dev/full', 'w')
    const server = start(['ignore', full, full], { flags: ['--quickstart'] })
    closeSync(full)
    await poll('the server is ready', isReady)
    await issueOne()
    server.kill('SIGTERM')
    expect(await once(server, 'exit')).toEqual([0, null])
  })
})
