import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCli, startWorld, type World } from '../cli/support.ts'
import { type GuideOptions, installMayfly, runGuide, type StepResult } from './run-guide.ts'

/** Where the commands of a page run. */
export interface Place {
  /** The current directory. */
  readonly cwd: string
  /** The directories `/etc` and `/var` of the page. */
  readonly etc: string
  readonly var: string
  /** The address of Mayfly, which is its issuer, too. */
  readonly mayfly: string
}

/** A real upstream, and how the names on a page lead to it. */
export interface PageUpstream {
  readonly replace?: GuideOptions['replace']
  readonly env?: Readonly<Record<string, string>>
  /** Shell scripts, for programs that need the address of the server. */
  readonly programs?: Readonly<Record<string, string>>
  /** What `systemctl` does with a service, whatever the verb. */
  readonly services?: Readonly<Record<string, () => Promise<void>>>
  /** Looks whether the commands have had their effect. */
  verify(results: readonly StepResult[]): Promise<void>
  stop(): Promise<void>
}

export type StartUpstream = (place: Place) => Promise<PageUpstream>

export interface PageWorld {
  /** Runs the page of this kind against a new upstream of its own. */
  runPage(type: string, start: StartUpstream): Promise<void>
  close(): Promise<void>
}

/** What the agent of the pages may do in the backends that they add. */
const SCOPES = [
  ...['orders:*', 'cache', 'rabbit', 'broker', 'bus', 'directory', 'servers:deploy'],
  ...['tls:worker', 'calendar:*', 'cloud:s3/reports:read', 'images:team/*'],
]

/** A server, its administrator, and an agent whose login the command keeps. */
export async function startPageWorld(): Promise<PageWorld> {
  const world = await startWorld({ jobs: true })
  const env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
  const agent = await world.app.newAgent({ scopes: SCOPES })
  const login = await runCli(['login', '--token-file', '-'], { env, stdin: agent.token })
  if (login.code !== 0) throw new Error(login.stderr)
  return {
    runPage: (type, start) => runPage(world, env, type, start),
    close: () => world.close(),
  }
}

async function runPage(world: World, env: Record<string, string>, type: string, start: StartUpstream) {
  const home = await mkdtemp(join(tmpdir(), 'mayfly-page-'))
  const [cwd, bin, etc, variable] = ['cwd', 'bin', 'etc', 'var'].map((name) => join(home, name)) as [
    string,
    string,
    string,
    string,
  ]
  for (const directory of [cwd, etc, variable]) await mkdir(directory)
  await installMayfly(bin)
  const upstream = await start({ cwd, etc, var: variable, mayfly: world.url })
  const services = await serveServices(upstream.services ?? {})
  try {
    const systemctl = `curl -fsS -X POST ${services.url}/"$2"`
    for (const [name, script] of Object.entries({ systemctl, ...upstream.programs }))
      await writeProgram(join(bin, name), script)
    const results = await runGuide(`docs/backends/${type}.md`, {
      env: { ...env, PATH: `${bin}:${env['PATH']}:/usr/sbin`, ...upstream.env },
      cwd,
      replace: [
        ...(upstream.replace ?? []),
        ['https://mayfly.example.com', world.url],
        ['mayfly.example.com', world.url.replace('http://', '')],
        ['/etc/', `${etc}/`],
        ['/var/', `${variable}/`],
      ],
    })
    await upstream.verify(results)
    await deleteBackends(world)
  } finally {
    services.close()
    await upstream.stop()
    await rm(home, { recursive: true, force: true })
  }
}

async function writeProgram(path: string, script: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
}

/** The next page may use the same names. */
async function deleteBackends(world: World): Promise<void> {
  const { body } = await world.app.admin('GET', '/v1/admin/backends')
  for (const { name } of body as { name: string }[])
    await world.app.admin('DELETE', `/v1/admin/backends/${name}?force=true`)
}

/** The other end of the `systemctl` in a page's PATH. */
async function serveServices(services: NonNullable<PageUpstream['services']>) {
  const server = createServer(async (request, response) => {
    const act = services[request.url?.slice(1) ?? '']
    const fault = act === undefined ? 'no such service' : await act().catch(String)
    response.writeHead(fault === undefined ? 200 : 500).end(fault)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
