import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from './app.ts'
import { freePort } from './free-port.ts'

const run = promisify(execFile)
const BACKENDS = ['/usr/lib/git-core/git-http-backend', '/usr/libexec/git-core/git-http-backend']

/** The scopes of a password; undefined if it is invalid. */
export type Check = (
  username: string,
  password: string,
) => Promise<{ agent: string; scopes: string[] } | undefined>

export interface GitServer {
  /** `http://127.0.0.1:port` */
  readonly url: string
  /** Directory of the bare repositories. */
  readonly root: string
  /** Status of every reply of the verifier, oldest first. */
  readonly verified: number[]
  close(): Promise<void>
}

/** git-http-backend behind fcgiwrap and nginx, which submits every request to `check`. */
export async function startGitServer(check: Check): Promise<GitServer> {
  const directory = await mkdtemp(join(tmpdir(), 'mf-git-'))
  const root = join(directory, 'repositories')
  await mkdir(root)
  const verified: number[] = []
  const verifier = createServer((request, response) => {
    void decide(request, check).then(({ status, agent }) => {
      verified.push(status)
      response.writeHead(status, {
        'x-agent': agent,
        ...(status === 401 ? { 'www-authenticate': 'Basic realm="git"' } : {}),
      })
      response.end()
    })
  })
  const verifierPort = await listen(verifier)
  const socket = join(directory, 'fcgi.sock')
  const port = await freePort()
  const config = join(directory, 'nginx.conf')
  await writeFile(config, nginxConfig({ directory, root, socket, port, verifierPort }))
  // Debian installs servers in a directory that only root's PATH includes.
  const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` }
  const children = [
    spawn('fcgiwrap', ['-s', `unix:${socket}`], { stdio: 'ignore', env }),
    spawn('nginx', ['-c', config, '-e', join(directory, 'error.log')], { stdio: 'ignore', env }),
  ]
  const faults: unknown[] = []
  for (const child of children) child.on('error', (error) => faults.push(error))
  const close = async () => {
    await Promise.all(children.map(end))
    await new Promise((resolve) => verifier.close(resolve))
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await eventually(async () => {
      if (faults.length > 0) throw faults[0]
      if (!existsSync(socket)) throw new Error('fcgiwrap does not listen')
      await reach(port)
    })
  } catch (error) {
    await close()
    throw error
  }
  return { url: `http://127.0.0.1:${port}`, root, verified, close }
}

/** A bare repository with one commit on `main`. */
export async function newRepository(server: GitServer, name: string): Promise<string> {
  const path = join(server.root, name)
  const env = {
    PATH: process.env['PATH'],
    GIT_AUTHOR_NAME: 'first',
    GIT_AUTHOR_EMAIL: 'first@example.com',
    GIT_COMMITTER_NAME: 'first',
    GIT_COMMITTER_EMAIL: 'first@example.com',
  }
  await run('git', ['init', '-q', '--bare', '-b', 'main', path], { env })
  const git = async (...args: string[]) => (await run('git', ['-C', path, ...args], { env })).stdout.trim()
  const tree = await git('hash-object', '-t', 'tree', '-w', '/dev/null')
  await git('update-ref', 'refs/heads/main', await git('commit-tree', '-m', 'first', tree))
  return path
}

async function decide(request: IncomingMessage, check: Check): Promise<{ status: number; agent: string }> {
  const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? '')?.[1]
  const [, username, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(basic ?? '', 'base64').toString()) ?? []
  const found = username === undefined || password === undefined ? undefined : await check(username, password)
  if (found === undefined) return { status: 401, agent: '' }
  const isPush = String(request.headers['x-original-uri']).includes('git-receive-pack')
  const isAllowed = found.scopes.includes('read') && (!isPush || found.scopes.includes('write'))
  return { status: isAllowed ? 200 : 403, agent: found.agent }
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

async function reach(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
  } finally {
    socket.destroy()
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

function nginxConfig(given: {
  directory: string
  root: string
  socket: string
  port: number
  verifierPort: number
}): string {
  const { directory, root, socket, port, verifierPort } = given
  const backend = BACKENDS.find(existsSync) ?? BACKENDS[0]
  return `
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${directory}/nginx.pid;
events {}
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  fastcgi_temp_path ${directory}/fastcgi;
  proxy_temp_path ${directory}/proxy;
  scgi_temp_path ${directory}/scgi;
  uwsgi_temp_path ${directory}/uwsgi;
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 0;
    location / {
      auth_request /verify;
      auth_request_set $agent $upstream_http_x_agent;
      fastcgi_pass unix:${socket};
      fastcgi_param SCRIPT_FILENAME ${backend};
      fastcgi_param GIT_PROJECT_ROOT ${root};
      fastcgi_param GIT_HTTP_EXPORT_ALL "";
      fastcgi_param PATH_INFO $uri;
      fastcgi_param QUERY_STRING $query_string;
      fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param CONTENT_TYPE $content_type;
      fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param REMOTE_USER $agent;
      fastcgi_param REMOTE_ADDR $remote_addr;
    }
    location = /verify {
      internal;
      proxy_pass http://127.0.0.1:${verifierPort};
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header X-Original-URI $request_uri;
    }
  }
}
`
}
