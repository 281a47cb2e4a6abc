import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { COMPILE_CACHE } from '../../test/support/compile-cache.ts'
import { FIELDS } from '../config/schema.ts'
import { openStore } from '../store/open.ts'

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url))
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-cli-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

function mayfly(argv: string[], env: Record<string, string> = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const options = {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
      timeout: 60_000,
    }
    const child = execFile(process.execPath, [MAIN, ...argv], options, (_, stdout, stderr) => {
      resolve({ code: child.exitCode, stdout, stderr })
    })
  })
}

test('--version is that of the package', async () => {
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
  expect(await mayfly(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
})

test('the bin runs by its shebang line', async () => {
  expect((await readFile(MAIN, 'utf8')).split('\n')[0]).toBe('#!/usr/bin/env node')
})

test('tells an older Node the two ways out, and imports nothing', async () => {
  const pretend = `
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.19.0' } })
    const { registerHooks } = await import('node:module')
    registerHooks({ load: (url, context, next) => {
      if (!/(main|node-version)\\.ts$/.test(url)) throw new Error('imported: ' + url)
      return next(url, context)
    } })`
  const preload = `data:text/javascript,${encodeURIComponent(pretend)}`
  const child = spawn(process.execPath, ['--import', preload, MAIN], { stdio: ['ignore', 'ignore', 'pipe'] })
  let text = ''
  child.stderr?.on('data', (chunk) => {
    text += chunk
  })
  expect(await once(child, 'close')).toEqual([1, null])
  expect(text).toMatch(/^mayfly needs Node\.js 24 or later; this is 22\.19\.0/)
  expect(text).toContain('package of Mayfly')
  expect(text).toContain('npx -p node@24 mayfly')
})

test('server --help explains each flag with default and variable', async () => {
  const { code, stdout } = await mayfly(['server', '--help'])
  expect(code).toBe(0)
  const help = stdout.replace(/\s+/g, ' ')
  for (const { flag, env, description, defaultText } of FIELDS) {
    if (flag === undefined) continue
    const facts = [`default: ${defaultText}`, ...(env === undefined ? [] : [`env: ${env}`])].join('; ')
    expect(help).toContain(` --${flag} `)
    expect(help).toContain(description.replaceAll('`', ''))
    expect(help).toContain(` [${facts.replaceAll('`', '')}]`)
  }
  expect(stdout).not.toMatch(/--master-key /)
})

test.each<[string, string[]]>([
  ['an unknown flag', ['server', '--lisen', 'x']],
  ['an unknown verb', ['sever']],
  ['a flag without its value', ['server', '--listen']],
  ['words that are too many', ['server', 'now']],
  ['nothing', []],
])('wrong usage is 2: %s', async (_, argv) => {
  const { code, stderr, stdout } = await mayfly(argv)
  expect(code).toBe(2)
  expect(stdout).toBe('')
  expect(stderr).not.toBe('')
  expect(stderr).not.toMatch(/\n\s+at /)
})

test('a wrong configuration exits with 2 and prints one line per fault, without a stack', async () => {
  await writeFile(join(folder, 'm.yaml'), 'listn: x\nmaster_key: hunter2hunter2\n')
  const argv = [
    'server',
    '--config',
    'm.yaml',
    '--listen',
    'x',
    '--trusted-proxy',
    'a',
    '--trusted-proxy',
    '10.0.0.0/8',
  ]
  const { code, stderr, stdout } = await mayfly(argv, { MAYFLY_LOG_LEVL: 'info' })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr.trimEnd().split('\n').sort()).toEqual([
    'mayfly: environment MAYFLY_LOG_LEVL: is not an environment variable of the server (did you mean "MAYFLY_LOG_LEVEL"?)',
    'mayfly: flag --listen: listen: "x" is not host:port; IPv6 is written as [::]:8620',
    'mayfly: flag --trusted-proxy: trusted_proxies.0: "a" is not a network such as 10.0.0.0/8',
    'mayfly: m.yaml:1:1: "listn" is not a setting (did you mean "listen"?)',
    'mayfly: m.yaml:2:1: master_key can only be set by the environment variable MAYFLY_MASTER_KEY',
  ])
})

test('a store that cannot be opened exits with 2 and prints one line', async () => {
  const dataDir = join(folder, 'held')
  const store = await openStore({ directory: dataDir })
  const argv = ['server', '--data-dir', dataDir, '--listen', '127.0.0.1:0']
  expect(await mayfly(argv)).toEqual({
    code: 2,
    stdout: '',
    stderr: `mayfly: data_dir: another process is using ${dataDir}, and only one Mayfly can use a data directory. Stop the other process, or choose another directory\n`,
  })
  await store.close()
  await writeFile(join(dataDir, 'mayfly.db'), 'not a database'.repeat(100))
  expect(await mayfly(argv)).toEqual({
    code: 2,
    stdout: '',
    stderr: `mayfly: data_dir: ${join(dataDir, 'mayfly.db')} is damaged or is not a SQLite database (file is not a database). Restore it from a backup\n`,
  })
})

/** A real process with real signals around `keepRunning`; what it starts is given as code. */
function keep(start: string, timeoutMs = 10_000): ChildProcess & { lines: string[] } {
  const at = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
  const code = `
    const { keepRunning } = await import(${at('frame/keep-running.ts')})
    const { createLogger } = await import(${at('../log/log.ts')})
    const log = createLogger({ level: 'debug', format: 'json' })
    const alive = setInterval(() => {}, 1000)
    try {
      process.exitCode = await keepRunning({
        start: async () => { ${start} },
        log, shutdownTimeoutMs: ${timeoutMs}, exit: (status) => process.exit(status),
      })
    } catch (error) { log.error({ err: error }, 'thrown'); process.exitCode = 9 }
    clearInterval(alive)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    for (const line of chunk.split('\n').filter((one) => one !== '')) {
      lines.push(JSON.parse(line).msg)
      child.emit(`said ${JSON.parse(line).msg}`)
    }
  })
  return Object.assign(child, { lines })
}

describe('signals', () => {
  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s closes and ends with 0', async (signal) => {
    const child = keep(`return { address: 'a', close: async () => { log.info({}, 'close called') } }`)
    await once(child, 'said listening')
    child.kill(signal)
    expect(await once(child, 'close')).toEqual([0, null])
    expect(child.lines).toEqual(['listening', 'closing', 'close called', 'closed'])
  })

  test('closing that takes too long is ended with 1', async () => {
    const child = keep(`return { address: 'a', close: () => new Promise(() => {}) }`, 50)
    await once(child, 'said listening')
    child.kill('SIGTERM')
    expect(await once(child, 'close')).toEqual([1, null])
    expect(child.lines).toEqual(['listening', 'closing', 'closing took too long; exiting now'])
  })

  test('the second signal ends at once', async () => {
    const child = keep(`return { address: 'a', close: () => new Promise(() => {}) }`, 60_000)
    await once(child, 'said listening')
    child.kill('SIGINT')
    await once(child, 'said closing')
    child.kill('SIGTERM')
    expect(await once(child, 'close')).toEqual([143, null])
  })

  test('the second SIGHUP of a terminal that closes lets it close', async () => {
    const child = keep(`return {
      address: 'a',
      close: () => new Promise((done) => process.once('SIGHUP', () => setImmediate(done))),
    }`)
    await once(child, 'said listening')
    child.kill('SIGHUP')
    await once(child, 'said closing')
    child.kill('SIGHUP')
    expect(await once(child, 'close')).toEqual([0, null])
  })

  test('closing that fails is 1', async () => {
    const child = keep(`return { address: 'a', close: async () => { throw new Error('no') } }`)
    await once(child, 'said listening')
    child.kill('SIGTERM')
    expect(await once(child, 'close')).toEqual([1, null])
    expect(child.lines).toContain('closing failed')
  })

  test('a signal during the start lets it finish, then closes the server', async () => {
    const child = keep(`
      log.info({}, 'starting')
      await new Promise((done) => process.once('SIGTERM', done))
      return { address: 'a', close: async () => {} }`)
    await once(child, 'said starting')
    child.kill('SIGTERM')
    expect(await once(child, 'close')).toEqual([0, null])
    expect(child.lines).toEqual(['starting', 'listening', 'closing', 'closed'])
  })

  test('a start that fails is thrown', async () => {
    const child = keep(`throw new Error('no')`)
    expect(await once(child, 'close')).toEqual([9, null])
    expect(child.lines).toEqual(['thrown'])
  })
})
