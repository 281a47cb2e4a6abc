import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../support/free-port.ts'
import { installMayfly, runGuide } from './run-guide.ts'

const run = promisify(execFile)

/** A server below a directory of its own, which pages see in /etc/mayfly and /var/lib/mayfly. */
export interface InstalledServer {
  readonly home: string
  readonly etc: string
  readonly port: number
  readonly env: Readonly<Record<string, string>>
  mayfly(...argv: string[]): Promise<string>
  runPage(path: string, more?: Readonly<Record<string, string>>): Promise<void>
  close(): Promise<void>
}

/**
 * `mayfly init --yes`, a started server, and one agent, `first`. In its PATH are a `systemctl` and a `journalctl` that
 * know this server alone. `prepare` puts files beside the configuration before.
 */
export async function installServer(
  options: (port: number) => readonly string[] = () => [],
  prepare: (etc: string) => Promise<unknown> = async () => {},
): Promise<InstalledServer> {
  const home = await mkdtemp(join(tmpdir(), 'mayfly-installed-'))
  const [bin, etc, data] = ['bin', 'etc', 'var'].map((name) => join(home, name)) as [string, string, string]
  const port = await freePort()
  await installMayfly(bin)
  for (const [name, text] of Object.entries(PROGRAMS)) {
    await writeFile(join(bin, name), text)
    await chmod(join(bin, name), 0o755)
  }
  const config = join(etc, 'mayfly.yaml')
  const env = {
    HOME: home,
    PATH: `${bin}:${process.env['PATH']}`,
    LANG: 'C.UTF-8',
    MAYFLY_KEYCHAIN: 'off',
    MAYFLY_CONFIG: config,
  }
  const mayfly: InstalledServer['mayfly'] = async (...argv) =>
    (await run(join(bin, 'mayfly'), argv, { env, cwd: home })).stdout
  const ctl = (verb: string) => run(join(bin, 'systemctl'), [verb, 'mayfly'], { env, cwd: home })
  const close = async () => {
    await ctl('stop')
    await rm(home, { recursive: true, force: true })
  }
  try {
    await mkdir(etc)
    await prepare(etc)
    const where = ['--config', config, '--data-dir', data, '--listen', `127.0.0.1:${port}`]
    await mayfly('init', '--yes', ...where, ...options(port))
    await ctl('start')
    await mayfly('agent', 'create', 'first', '--scope', 'reports', '--data-dir', data, '--json')
  } catch (error) {
    const log = await readFile(join(home, 'log'), 'utf8').catch(() => '')
    await close()
    throw new Error(`${(error as Error).message}\n${log}`)
  }
  const runPage: InstalledServer['runPage'] = async (path, more = {}) => {
    await runGuide(path, {
      env: { ...env, ...more },
      cwd: home,
      replace: [
        ['https://mayfly.example.com', `https://localhost:${port}`],
        ['/var/lib/mayfly', data],
        ['/etc/mayfly', etc],
        ['8620', String(port)],
      ],
    })
  }
  return { home, etc, port, env, mayfly, runPage, close }
}

/** The server outlives the page that starts it, and has its log in a file. */
const PROGRAMS = {
  systemctl: `#!/bin/sh
stop() {
  [ -f "$HOME/pid" ] || return 0
  pid=$(cat "$HOME/pid")
  kill "$pid" 2>/dev/null
  while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
  rm "$HOME/pid"
}
start() {
  setsid sh -c 'echo $$ > "$HOME/pid"; exec mayfly server --config "$HOME/etc/mayfly.yaml"' >>"$HOME/log" 2>&1 </dev/null &
  until curl -sf --unix-socket "$HOME/var/admin.sock" http://localhost/health >/dev/null; do
    sleep 0.05
    [ ! -f "$HOME/pid" ] || kill -0 "$(cat "$HOME/pid")" || { tail "$HOME/log"; exit 1; }
  done
}
case "$1" in
  stop | disable) stop ;;
  start) start ;;
  restart) stop; start ;;
  reload) mayfly server reload --config "$HOME/etc/mayfly.yaml" ;;
esac
`,
  journalctl: `#!/bin/sh
cat "$HOME/log"
`,
}
