import { describe, expect, test } from 'vitest'
import { faultsOf, type ConfigGiven as Given, loadGiven as load } from '../../test/support/config.ts'
import { FIELDS } from './schema.ts'

test('returns the defaults when no source has a value', async () => {
  const { config, origins } = await load()
  expect(config).toEqual({
    listen: { host: '127.0.0.1', port: 8620 },
    issuer: 'http://127.0.0.1:8620',
    previousIssuers: [],
    tls: undefined,
    localAdmin: 'auto',
    trustedProxies: [],
    dataDir: './mayfly-data',
    databaseUrl: undefined,
    masterKey: { from: 'file', file: './mayfly-data/master.key' },
    pluginDir: './mayfly-data/plugins',
    pluginEnv: {},
    retentionMs: 0,
    signingDomain: 'mayfly.local',
    signingIdentity: 'strict',
    signingKeyExport: true,
    accessTokenTtlMs: 3_600_000,
    audiences: [],
    policies: [],
    notify: [],
    sso: [],
    identities: [],
    platforms: [],
    tokenFailuresPerMinute: 10,
    tokensPerMinute: 600,
    enrollmentsPerMinute: 10,
    maxPendingEnrollments: 1_000,
    maxActivePerAgent: 10_000,
    issueRate: undefined,
    runsHeartbeatMs: 10_000,
    maxConnections: 10_000,
    issueByGet: true,
    console: 'on',
    operatorLogin: 'on',
    revokeUndelivered: true,
    logLevel: 'info',
    logFormat: 'json',
    accessLog: false,
    shutdownTimeoutMs: 35_000,
    upstreamTimeoutMs: 10_000,
    quickstart: false,
  })
  expect(Object.keys(origins).sort()).toEqual(FIELDS.map(({ path }) => path).sort())
  expect(new Set(Object.values(origins))).toEqual(new Set(['default', 'derived']))
})

test('prefers flag over environment over file over default, and names the origin', async () => {
  const yaml = 'listen: 127.0.0.1:1\nlog_level: warn\nlimits:\n  max_connections: 5\n'
  const env = { MAYFLY_LISTEN: '127.0.0.1:2', MAYFLY_LIMITS_MAX_CONNECTIONS: '6' }
  const from = async (given: Given) => {
    const { config, origins } = await load(given)
    return [config.listen.port, origins['listen']]
  }
  expect(await from({ yaml })).toEqual([1, 'm.yaml:1:9'])
  expect(await from({ yaml, env })).toEqual([2, 'environment MAYFLY_LISTEN'])
  expect(await from({ yaml, env, argv: { listen: '127.0.0.1:3' } })).toEqual([3, 'flag --listen'])
  const { config, origins } = await load({ yaml, env })
  expect(config).toMatchObject({ logLevel: 'warn', maxConnections: 6, maxActivePerAgent: 10_000 })
  expect(origins).toMatchObject({
    log_level: 'm.yaml:2:12',
    'limits.max_connections': 'environment MAYFLY_LIMITS_MAX_CONNECTIONS',
  })
})

test('reads every setting from the environment that allows it', async () => {
  const values: Record<string, string> = {
    listen: '[::1]:9000',
    issuer: 'https://mayfly.example.com/x',
    previous_issuers: 'https://old.example.com,http://localhost:8620',
    tls_cert_file: 'c.pem',
    tls_key_file: 'k.pem',
    local_admin: 'off',
    trusted_proxies: '10.0.0.0/8, 192.168.1.1,fd00::/8',
    data_dir: '/data/',
    database_url: 'postgres://u:p@h/d',
    retention: '90d',
    otlp_endpoint: 'http://10.0.0.7:4318/',
    recipes_dir: '/etc/mayfly/recipes',
    plugin_dir: '/srv/plugins',
    plugin_user: 'mayfly-plugin',
    plugin_env: 'HTTPS_PROXY,TZ',
    signing_domain: 'Example.org',
    signing_identity: 'committer',
    signing_key_export: 'false',
    access_token_ttl: '5m',
    audiences: 'sts.amazonaws.com,https://x.example',
    issue_by_get: 'false',
    console: 'off',
    operator_login: 'off',
    revoke_undelivered: 'false',
    log_level: 'debug',
    log_format: 'pretty',
    access_log: 'true',
    shutdown_timeout: '1m',
    upstream_timeout: '2s',
    'limits.token_failures_per_minute': '1',
    'limits.tokens_per_minute': '6',
    'limits.enrollments_per_minute': '2',
    'limits.max_pending_enrollments': '3',
    'limits.max_active_per_agent': '4',
    'limits.issue_rate': '100/minute',
    'limits.max_connections': '5',
    'runs.heartbeat': '30s',
    'runs.max': '8h',
    master_key: '1:00',
  }
  const apart = ['database_url_file', 'master_key_file', 'master_key_command']
  const env = Object.fromEntries(
    FIELDS.flatMap(({ path, env: name }) =>
      name === undefined || apart.includes(path) ? [] : [[name, values[path] ?? '']],
    ),
  )
  const { config } = await load({ env: { ...env, TZ: 'UTC' } })
  expect(config.databaseUrl?.reveal()).toBe('postgres://u:p@h/d')
  // Those that are set; they may hold secrets.
  const passed = Object.entries(config.pluginEnv).map(([name, value]) => [name, value.reveal()])
  expect([passed, JSON.stringify(config)]).toEqual([[['TZ', 'UTC']], expect.not.stringContaining('UTC')])
  expect(config).toMatchObject({
    listen: { host: '::1', port: 9_000 },
    issuer: 'https://mayfly.example.com/x',
    previousIssuers: ['https://old.example.com', 'http://localhost:8620'],
    tls: { certFile: 'c.pem', keyFile: 'k.pem' },
    localAdmin: 'off',
    trustedProxies: ['10.0.0.0/8', '192.168.1.1/32', 'fd00::/8'],
    pluginDir: '/srv/plugins',
    pluginUser: 'mayfly-plugin',
    retentionMs: 90 * 86_400_000,
    otlpEndpoint: 'http://10.0.0.7:4318',
    recipesDir: '/etc/mayfly/recipes',
    signingDomain: 'example.org',
    signingIdentity: 'committer',
    signingKeyExport: false,
    accessTokenTtlMs: 300_000,
    audiences: ['sts.amazonaws.com', 'https://x.example'],
    tokenFailuresPerMinute: 1,
    tokensPerMinute: 6,
    issueRate: { count: 100, perMs: 60_000 },
    maxConnections: 5,
    runsHeartbeatMs: 30_000,
    runsMaxMs: 8 * 3_600_000,
    issueByGet: false,
    console: 'off',
    operatorLogin: 'off',
    revokeUndelivered: false,
    accessLog: true,
    shutdownTimeoutMs: 60_000,
    upstreamTimeoutMs: 2_000,
  })
})

test('reads flags in the form of commander', async () => {
  const argv = {
    trustedProxy: ['10.0.0.0/8'],
    accessLog: true,
    quickstart: true,
    audience: ['x'],
    logLevel: undefined,
  }
  const { config } = await load({ argv })
  expect(config).toMatchObject({
    trustedProxies: ['10.0.0.0/8'],
    accessLog: true,
    quickstart: true,
    audiences: ['x'],
  })
})

test('derives issuer, signing domain and master key file', async () => {
  expect((await load({ argv: { listen: '0.0.0.0:99' } })).config.issuer).toBe('http://127.0.0.1:99')
  expect((await load({ argv: { listen: '[::1]:99' } })).config.issuer).toBe('http://[::1]:99')
  const tls = { tlsCertFile: 'c', tlsKeyFile: 'k' }
  expect((await load({ argv: tls })).config.issuer).toBe('https://127.0.0.1:8620')
  expect((await load({ argv: { issuer: 'https://m.example.com' } })).config.signingDomain).toBe(
    'm.example.com',
  )
  expect((await load({ argv: { issuer: 'https://10.0.0.1' } })).config.signingDomain).toBe('mayfly.local')
  expect((await load({ argv: { issuer: 'http://[::1]:8620' } })).config.signingDomain).toBe('mayfly.local')
  expect((await load({ argv: { dataDir: '/d//' } })).config.masterKey).toEqual({
    from: 'file',
    file: '/d/master.key',
  })
  expect((await load({ argv: { dataDir: '/' } })).config.masterKey).toEqual({
    from: 'file',
    file: '//master.key',
  })
})

test('derives the time to shut down from the time that a call upstream may take', async () => {
  const shutdownOf = async (yaml: string) => (await load({ yaml })).config.shutdownTimeoutMs
  expect(await shutdownOf('upstream_timeout: 1m\n')).toBe(135_000)
  expect(await shutdownOf('upstream_timeout: 1m\nshutdown_timeout: 5s\n')).toBe(5_000)
})

test('reads the master key from a file or a command', async () => {
  const command = async (given: Given) => (await load(given)).config.masterKey
  expect(await command({ argv: { masterKeyFile: '/k' } })).toEqual({ from: 'file', file: '/k' })
  expect(await command({ argv: { masterKeyCommand: 'pass show  mayfly/key' } })).toEqual({
    from: 'command',
    argv: ['pass', 'show', 'mayfly/key'],
  })
  expect(await command({ yaml: 'master_key_command: [sh, -c, "echo $KEY"]' })).toEqual({
    from: 'command',
    argv: ['sh', '-c', 'echo $KEY'],
  })
  expect(await command({ env: { MAYFLY_MASTER_KEY_COMMAND: '["a","b c"]' } })).toMatchObject({
    argv: ['a', 'b c'],
  })
})

test('reports all faults of all sources at once, each with its place', async () => {
  const yaml = `# a comment
listn: 127.0.0.1:1
access_token_ttl: 5 minutes
limits:
  max_conections: 5
  max_pending_enrollments: many
trusted_proxies:
  - 10.0.0.0/8
  - nonsense
quickstart: true
`
  const faults = await faultsOf({
    yaml,
    argv: { listen: 'nowhere', bogus: '1' },
    env: {
      MAYFLY_LISTN: 'x',
      MAYFLY_LOG_LEVEL: 'loud',
      MAYFLY_ISSUER: '',
      MAYFLY_DB_URL: 'x',
      HOME: '/root',
    },
  })
  expect(faults.map(({ source, message }) => `${source} | ${message}`).sort()).toEqual([
    'environment MAYFLY_DB_URL | is not an environment variable of the server',
    'environment MAYFLY_ISSUER | is empty: unset it or give it a value',
    'environment MAYFLY_LISTN | is not an environment variable of the server (did you mean "MAYFLY_LISTEN"?)',
    'environment MAYFLY_LOG_LEVEL | log_level must be one of: debug, info, warn, error',
    'flag --bogus | is not a flag of this command',
    'flag --listen | listen: "nowhere" is not host:port; IPv6 is written as [::]:8620',
    'm.yaml:10:1 | quickstart can only be set by the flag --quickstart',
    'm.yaml:2:1 | "listn" is not a setting (did you mean "listen"?)',
    'm.yaml:3:19 | access_token_ttl: "5 minutes" is not a duration: write it as 45s, 10m, 1h30m or 7d',
    'm.yaml:5:3 | "limits.max_conections" is not a setting (did you mean "max_connections"?)',
    'm.yaml:6:28 | limits.max_pending_enrollments must be of type integer',
    'm.yaml:9:5 | trusted_proxies.1: "nonsense" is not a network such as 10.0.0.0/8',
  ])
})

test('checks a value even if another source overrides it', async () => {
  const faults = await faultsOf({ yaml: 'listen: x', argv: { listen: '127.0.0.1:1' } })
  expect(faults.map(({ source }) => source)).toEqual(['m.yaml:1:9'])
})

test('ignores variables of the client verbs and those that Kubernetes injects', async () => {
  await load({
    env: {
      MAYFLY_SERVER: 'https://x',
      MAYFLY_TOKEN: 'x',
      MAYFLY_PORT: 'tcp://10.0.0.1:8620',
      MAYFLY_PORT_8620_TCP_ADDR: '10.0.0.1',
      MAYFLY_SERVICE_HOST: '10.0.0.1',
      MAYFLY_SERVICE_PORT_HTTP: '8620',
      MAYFLY_WEB_SERVICE_HOST: '10.0.0.2',
      MAYFLYX: '',
      mayfly_listen: 'x',
    },
  })
})

describe('the configuration file', () => {
  test('is named by the flag or by the variable; the flag wins', async () => {
    const files = { a: 'log_level: warn', b: 'log_level: error' }
    expect((await load({ env: { MAYFLY_CONFIG: 'a' }, files })).config.logLevel).toBe('warn')
    expect((await load({ env: { MAYFLY_CONFIG: 'a' }, argv: { config: 'b' }, files })).config.logLevel).toBe(
      'error',
    )
  })
  test('may be empty', async () => {
    for (const yaml of ['', '# nothing\n', '---\n', '{}', '\ufeff']) await load({ yaml })
  })
  test.each<[string, string, string, RegExp]>([
    ['a list', '- a\n', 'm.yaml:1:1', /key: value/],
    ['a word', 'hello', 'm.yaml:1:1', /key: value/],
    ['a key twice', 'log_level: info\nlog_level: warn\n', 'm.yaml:2:1', /twice/],
    ['an open bracket', 'audiences: [a\n', 'm.yaml:2:1', /bracket/],
    ['a tab', '\tlog_level: info', 'm.yaml:1:1', /tab/],
    ['two documents', 'log_level: info\n---\nlog_level: warn\n', 'm.yaml:2:1', /more than one document/],
    ['a tag', 'log_level: !!js/function x', 'm.yaml:1:12', /tag/],
    ['an unknown alias', 'log_level: *x', 'm.yaml:1:1', /alias/],
    ['a key that is no word', '1: x', 'm.yaml:1:1', /./],
    ['a merge', '<<: {log_level: info}', 'm.yaml:1:1', /not a setting/],
    ['__proto__', '__proto__: {quickstart: true}', 'm.yaml:1:1', /not a setting/],
    ['constructor', 'constructor: x', 'm.yaml:1:1', /not a setting/],
    ['limits that are a number', 'limits: 5', 'm.yaml:1:9', /limits must contain/],
    ['limits that are nothing', 'limits:', 'm.yaml:1:8', /limits must contain/],
    ['a field that is nothing', 'listen:', 'm.yaml:1:8', /listen must be of type string/],
    ['a port alone', 'listen: 8620', 'm.yaml:1:9', /must be of type string/],
  ])('%s', async (_, yaml, source, message) => {
    const faults = await faultsOf({ yaml })
    expect(faults[0]).toEqual({ source, message: expect.stringMatching(message) })
  })
  test('is refused, not expanded, if it multiplies aliases', async () => {
    const lines = ['a: &a [x,x,x,x,x,x,x,x,x]']
    for (let i = 1; i < 12; i += 1) {
      const [name, from] = [String.fromCharCode(97 + i), String.fromCharCode(96 + i)]
      lines.push(`${name}: &${name} [${Array(9).fill(`*${from}`).join(',')}]`)
    }
    expect((await faultsOf({ yaml: lines.join('\n') }))[0]?.message).toMatch(/alias/)
  })
  test('is refused if it cannot be read', async () => {
    expect(await faultsOf({ argv: { config: '/no' } })).toEqual([
      { source: 'flag --config', message: 'the file "/no" does not exist. Run: mayfly init --config /no' },
    ])
    const [fault] = await faultsOf({ env: { MAYFLY_CONFIG: '/no' } })
    expect(fault).toMatchObject({ source: 'environment MAYFLY_CONFIG' })
    expect(await faultsOf({ argv: { config: 'f' }, files: { f: Uint8Array.of(0xff) } })).toMatchObject([
      { message: expect.stringMatching(/UTF-8/) },
    ])
    expect(await faultsOf({ argv: { config: '' } })).toMatchObject([{ message: 'does not name a file' }])
  })
})
