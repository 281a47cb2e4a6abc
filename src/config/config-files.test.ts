import { expect, test } from 'vitest'
import { ConfigError } from '../domain/fault.ts'
import { loadConfig } from './load.ts'
import { showSettings } from './show-settings.ts'

/** Files in memory, by their paths. */
function given(files: Readonly<Record<string, string>>, more: object = {}) {
  return {
    argv: { config: '/etc/m/mayfly.yaml' },
    env: {},
    readFile: async (path: string) => {
      const text = files[path]
      if (text === undefined) throw Object.assign(new Error(path), { code: 'ENOENT' })
      return Buffer.from(text)
    },
    readDirectory: async (path: string) => {
      const names = Object.keys(files).flatMap((name) =>
        name.startsWith(`${path}/`) ? [name.slice(path.length + 1)] : [],
      )
      if (names.length === 0) throw Object.assign(new Error(path), { code: 'ENOENT' })
      // As a directory has them: in no order.
      return names.reverse()
    },
    ...more,
  }
}

const faultsOf = async (files: Readonly<Record<string, string>>, more: object = {}) => {
  try {
    await loadConfig(given(files, more))
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}

const MAIN = '/etc/m/mayfly.yaml'
const POLICY = (name: string) => `policies: [{ name: ${name}, pattern: "${name}-*", scopes: [demo] }]\n`

test('the later file decides, each setting for itself, and a list replaces the earlier one', async () => {
  const files = {
    [MAIN]: `listen: 127.0.0.1:1\nlog_level: warn\naudiences: [a, b]\nlimits: { issue_rate: 1/minute }\n${POLICY('main')}`,
    '/etc/m/conf.d/10-a.yaml': 'log_level: info\nretention: 30d\n',
    '/etc/m/conf.d/20-b.yaml': `log_level: debug\naudiences: [c]\nlimits: { max_connections: 7 }\n${POLICY('own')}`,
  }
  const { config, origins } = await loadConfig(given(files))
  expect(config).toMatchObject({
    logLevel: 'debug',
    audiences: ['c'],
    retentionMs: 30 * 86_400_000,
    issueRate: { count: 1 },
    maxConnections: 7,
    policies: [{ name: 'own' }],
  })
  expect(origins).toMatchObject({
    listen: `${MAIN}:1:9`,
    log_level: '/etc/m/conf.d/20-b.yaml:1:12',
    retention: '/etc/m/conf.d/10-a.yaml:2:12',
    'limits.issue_rate': `${MAIN}:4:23`,
  })
  const shown = await showSettings(given(files))
  expect(shown.find(({ name }) => name === 'audiences')).toMatchObject({
    name: 'audiences',
    value: '["c"]',
    origin: '/etc/m/conf.d/20-b.yaml:2:12',
  })
})

test('a variable and a flag still go before every file', async () => {
  const files = { [MAIN]: '', '/etc/m/conf.d/a.yaml': 'log_level: debug\nlisten: 127.0.0.1:1\n' }
  const more = { argv: { config: MAIN, listen: '127.0.0.1:2' }, env: { MAYFLY_LOG_LEVEL: 'error' } }
  const { config } = await loadConfig(given(files, more))
  expect(config).toMatchObject({ logLevel: 'error', listen: { port: 2 } })
})

test('reports the faults of all files together, each with its file and line', async () => {
  const faults = await faultsOf({
    [MAIN]: 'log_level: loud\n',
    '/etc/m/conf.d/10-a.yaml': 'log_level: info\nnonsense: 1\n',
    '/etc/m/conf.d/20-b.yaml': 'policies: [{ name: x }]\n',
  })
  expect(faults.map(({ source }) => source)).toEqual([
    '/etc/m/conf.d/10-a.yaml:2:1',
    '/etc/m/conf.d/20-b.yaml:1:12',
    `${MAIN}:1:12`,
  ])
  const texts = await faultsOf({ [MAIN]: 'a: [\n', '/etc/m/conf.d/b.yaml': 'b: {\n' })
  expect(texts.map(({ source }) => source.split(':')[0])).toEqual(['/etc/m/conf.d/b.yaml', MAIN])
})

test('what is no drop-in is not read', async () => {
  const names = ['.a.yaml', 'a.yaml~', 'a.yaml.dpkg-old', 'a.yml', 'README', '.#a.yaml']
  const files = Object.fromEntries(names.map((name) => [`/etc/m/conf.d/${name}`, 'log_level: debug\n']))
  expect((await loadConfig(given({ [MAIN]: '', ...files }))).config.logLevel).toBe('info')
})

test('two files that contradict each other are a fault, as in one file', async () => {
  const files = {
    [MAIN]: 'database_url: postgres://db/mayfly\n',
    '/etc/m/conf.d/a.yaml': 'database_url_file: /etc/m/url\n',
  }
  expect(await faultsOf(files)).toMatchObject([{ source: '/etc/m/conf.d/a.yaml:1:20' }])
})

test('a directory that cannot be read is a fault', async () => {
  const readDirectory = () => Promise.reject(Object.assign(new Error('no'), { code: 'EACCES' }))
  expect(await faultsOf({ [MAIN]: '' }, { readDirectory })).toEqual([
    {
      source: '/etc/m/conf.d',
      message: expect.stringContaining('the directory "/etc/m/conf.d" is not readable by this user'),
    },
  ])
})
