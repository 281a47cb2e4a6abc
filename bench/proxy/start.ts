/** Starts the upstream and the proxies before it, each in a process of its own. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { forkHere, stopAtEnd, temporaryDirectory } from '../processes.ts'
import type { Bench } from '../scenario.ts'
import { freePort } from '../server.ts'

/** What a proxy is told. */
export interface Start {
  /** Port of the upstream on 127.0.0.1. */
  readonly upstream: number
  /** Directory of the checkout whose proxy is run. */
  readonly checkout: string
}

/** Of the form of a real one, and as long. */
export const SECRET = 'ghs_Rk3vX9tQ2LmZ8pWb5sYd7nCf1hJg4eAu6oTi'
export const PLACEHOLDER = 'ghs_mayflyBench0123456789abcdefghijklmnop'

export interface Running {
  readonly pid: number
  readonly port: number
}

export async function startUpstream(): Promise<Running> {
  return portOf(forkHere('proxy/upstream.ts'))
}

export async function startBare(start: Start): Promise<Running> {
  const child = forkHere('proxy/bare.ts')
  child.send(start)
  return portOf(child)
}

export async function startOurProxy(start: Start, { nodeArgs }: Bench): Promise<Running> {
  const child = forkHere('proxy/ours.ts', nodeArgs)
  child.send(start)
  return portOf(child)
}

/** Undefined: nginx is not installed. One process, as each of the others; it writes no record. */
export async function startNginx({ upstream }: Pick<Start, 'upstream'>): Promise<Running | undefined> {
  if (spawnSync('nginx', ['-v']).error !== undefined) return undefined
  const directory = temporaryDirectory(undefined)
  const port = await freePort()
  const file = join(directory, 'nginx.conf')
  writeFileSync(file, nginxConfig(directory, port, upstream))
  const child = stopAtEnd(spawn('nginx', ['-p', directory, '-c', file], { stdio: ['ignore', 2, 'ignore'] }))
  for (let tries = 0; !(await listens(port)); tries += 1) {
    if (tries === 100 || child.exitCode !== null) throw new Error('nginx did not start')
    await pause(50)
  }
  return { pid: child.pid!, port }
}

function nginxConfig(directory: string, port: number, upstream: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (one) => `${one}_temp_path ${directory}/${one};`,
  )
  return `
daemon off;
master_process off;
pid ${directory}/nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off;
  ${temporary.join(' ')}
  upstream up { server 127.0.0.1:${upstream}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 1000000000;
    client_max_body_size 0;
    location / {
      proxy_pass http://up;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Authorization "Bearer ${SECRET}";
      proxy_request_buffering off;
      proxy_max_temp_file_size 0;
    }
  }
}
`
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const settle = (does: boolean) => {
      socket.destroy()
      resolve(does)
    }
    socket.once('connect', () => settle(true))
    socket.once('error', () => settle(false))
  })
}

function portOf(child: ChildProcess): Promise<Running> {
  return new Promise((resolve, reject) => {
    child.once('message', ({ port }: { port: number }) => resolve({ pid: child.pid!, port }))
    child.once('exit', () => reject(new Error('a server of the bench ended early')))
  })
}
