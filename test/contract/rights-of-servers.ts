import type { Config as LdapConfig } from '../../src/backends/ldap/config.ts'
import { groupsOf } from '../../src/backends/ldap/config.ts'
import { aclsOf } from '../../src/backends/mqtt/scopes.ts'
import type { Config as MysqlConfig } from '../../src/backends/mysql/config.ts'
import { grantStatement, planGrants } from '../../src/backends/mysql/grants.ts'
import type { Config as PostgresConfig } from '../../src/backends/postgres/config.ts'
import { planGroups } from '../../src/backends/postgres/plan.ts'
import { rulesFor } from '../../src/backends/redis/rules.ts'
import { bySending, matchesGlob, type Right, type RightsOfKind, right } from './rights.ts'

const NAMESPACES = ['shop', 'shop-eu', 'evil']
const BOUND = {
  metadata: {},
  status: { token: 'token', expirationTimestamp: '2100-01-01T00:00:00Z' },
  kind: 'Status',
  items: [],
}

const kubernetes: RightsOfKind = {
  type: 'kubernetes',
  config: {
    server: 'https://k8s.example.com:6443',
    token: 'change-me',
    namespaces: ['shop', 'shop-eu'],
    roles: ['view', 'viewer', 'edit', 'role/deployer'],
  },
  names: { namespace: NAMESPACES, role: ['deployer', 'dep', 'view'] },
  forms: ['<namespace>:viewer', '<namespace>:edit', '<namespace>:admin', '<namespace>:r*'],
  refused: ['shop:admin'],
  open: bySending(
    (sent) => {
      const bindings = sent.filter(
        ({ method, url }) => method === 'POST' && /rolebindings$/.test(url.pathname),
      )
      return bindings.map(({ url, body }) => {
        const [, namespace] = /namespaces\/([^/]+)\//.exec(url.pathname) ?? []
        const { kind, name } = body.roleRef
        return right(`${namespace}:${kind === 'Role' ? 'role/' : ''}${name}`)
      })
    },
    { reply: BOUND, status: 201 },
  ),
}

const ldap: RightsOfKind = {
  type: 'ldap',
  config: {
    url: 'ldaps://ldap.example.com',
    bind_dn: 'cn=mayfly,dc=example,dc=com',
    bind_password: 'change-me',
    base: 'ou=agents,dc=example,dc=com',
    groups: ['readers', 'readers-eu', 'writers'].map((name) => `cn=${name},ou=groups,dc=example,dc=com`),
  },
  names: { group: ['readers', 'readers-eu', 'writers', 'evil'] },
  open:
    ({ config }) =>
    (scopes) =>
      scopes
        .flatMap((scope) => groupsOf(config as Pick<LdapConfig, 'groups'>, scope))
        .map((dn) => right(/^cn=([^,]+),/.exec(dn)?.[1] ?? dn)),
}

const TOPICS = ['a', 'b', 'a/b', 'b/a', 'a/bc', 'a/b/c', 'sensors', '$SYS/a'].concat(
  ['a', 'b', 'bc', 'a/state', 'b/state', 'a/b/c'].map((below) => `sensors/${below}`),
)

/** MQTT 5.0, §4.7: a filter, level by level. */
function matchesFilter(filter: string, topic: string): boolean {
  const [levels, actual] = [filter.split('/'), topic.split('/')]
  if (topic.startsWith('$') && /^[+#]/.test(filter)) return false
  const at = levels.indexOf('#')
  const parent = at === -1 ? levels : levels.slice(0, at)
  if (at === -1 ? actual.length !== levels.length : actual.length < parent.length) return false
  return parent.every((level, index) => level === '+' || level === actual[index])
}

/** The topic, with + in place of any of its levels; also as the one whose descendants a scope with /* names. */
function topicsAbove(topic: string): string[] {
  const all = topic
    .split('/')
    .reduce<string[]>(
      (starts, level) =>
        starts.flatMap((start) => [level, '+'].map((next) => (start === '' ? next : `${start}/${next}`))),
      [''],
    )
  return all.flatMap((one) => [one, `${one}/*`])
}

const mqtt: RightsOfKind = {
  type: 'mqtt',
  config: { url: 'mqtts://mqtt.example.com', username: 'mayfly', password: 'change-me' },
  names: { name: ['a', 'b', 'bc'] },
  forms: ['a/*', 'a/+', '+/b:write', '+/*:read', 'a/b', 'sensors:write', '+/+/state:read', '*:read'],
  open: () => (scopes) =>
    aclsOf(scopes).flatMap(({ acltype, topic: filter, allow }) => {
      // Takes the rest, which no entry gives, from what the broker allows by default.
      if (!allow) return []
      const permission = acltype === 'publishClientSend' ? 'write' : 'read'
      return TOPICS.filter((topic) => matchesFilter(filter, topic)).map((topic) => ({
        name: `${acltype} ${topic}`,
        by: topicsAbove(topic).map((one) => `${one}:${permission}`),
      }))
    }),
}

const TABLES = ['items', 'items2', 'a_b', 'unnamed']
/** Of the server; the backend grants the first three. */
const DATABASES = ['shop', 'sho_', 'orders', 'shoq', 'evil', 'mysql']

/** MySQL 8.4 manual, "GRANT Statement": what a statement gives in these databases. */
function rightsOfGrant(statement: string): Right[] {
  const [, list = '', database = '', table] =
    /^GRANT ([A-Z, ]+) ON `([^`]+)`\.(?:\*|`([^`]+)`) TO 'mf_a'@'%'$/.exec(statement) ?? []
  if (list === '') throw new Error(`not understood: ${statement}`)
  const like = database.replace(/\\?./gs, (sign) => ({ _: '.', '%': '.*' })[sign] ?? sign)
  const isMeant = (name: string) =>
    table === undefined ? new RegExp(`^${like}$`).test(name) : name === database
  // MySQL refuses a table that does not exist.
  const tables = TABLES.filter((one) => table === undefined || one === table)
  return DATABASES.filter(isMeant).flatMap((name) =>
    tables.flatMap((one) =>
      list.split(', ').map((privilege) => {
        const both = [`${name}.${one}`, name]
        const writing = both.map((place) => `${place}:write`)
        const reads = privilege === 'SELECT' || privilege === 'SHOW VIEW'
        const by = reads ? [...writing, ...both.map((place) => `${place}:read`)] : writing
        return { name: `${privilege} ${name}.${one}`, by }
      }),
    ),
  )
}

const SQL = { host: 'db.example.com', username: 'mayfly', password: 'change-me' }

const mysqlOf = (grant: 'read-only' | 'read-write'): RightsOfKind => ({
  type: 'mysql',
  variant: grant,
  config: { ...SQL, databases: DATABASES.slice(0, 3), grant },
  names: { database: DATABASES, table: TABLES.slice(0, 3) },
  ...(grant === 'read-write' ? {} : { refused: ['shop:write', 'shop.items:write'] }),
  open:
    ({ config }) =>
    (scopes) =>
      planGrants(config as unknown as MysqlConfig, scopes).flatMap((one) =>
        rightsOfGrant(grantStatement(one, "'mf_a'@'%'")),
      ),
})

const postgresOf = (grant: 'read-only' | 'read-write'): RightsOfKind => ({
  type: 'postgres',
  variant: grant,
  config: { ...SQL, database: 'shop', databases: ['shop', 'shop2', 'orders'], grant },
  names: { database: ['shop', 'shop2', 'orders', 'evil'] },
  ...(grant === 'read-write' ? {} : { refused: ['shop:write'] }),
  open:
    ({ config }) =>
    (scopes) =>
      planGroups(config as unknown as PostgresConfig, scopes).flatMap(({ database, access }) => {
        const reading = right(`${database}:read`, `${database}:write`)
        return access === 'read' ? [reading] : [reading, right(`${database}:write`)]
      }),
})

const QUEUES = ['q', 'q1', 'q.a', 'q.b', 'zz', 'q\n', 'aq', 'amq.default']

const rabbitmq: RightsOfKind = {
  type: 'rabbitmq',
  config: {
    url: 'https://rabbit.example.com:15671',
    username: 'mayfly',
    password: 'change-me',
    vhosts: ['shop', 'shop2', '/'],
  },
  names: { vhost: ['shop', 'shop2', '/', 'evil'], name: ['q', 'q1', 'q.a'] },
  forms: ['<vhost>:q*:write', '<vhost>:*:read', '*'],
  open: bySending(
    (sent) => {
      const puts = sent.filter(({ method, url }) => method === 'PUT' && /\/permissions\//.test(url.pathname))
      return puts.flatMap(({ url, body }) => {
        const vhost = decodeURIComponent(/permissions\/([^/]+)\//.exec(url.pathname)?.[1] ?? '')
        return ['configure', 'write', 'read'].flatMap((permission) => {
          const expression = body[permission].replaceAll('\\A', '^').replaceAll('\\z', '$')
          return QUEUES.filter((name) => new RegExp(expression).test(name)).map((name) =>
            right(`${vhost}:${name}:${permission}`),
          )
        })
      })
    },
    { reply: {}, status: 201 },
  ),
}

const KEYS = ['a', 'ab', 'a:b', 'a:bc', 'b', 'zz']

/** Redis, "ACL": what these rules, in their order, permit with some keys and channels. */
function rightsOfRules(rules: readonly string[]): Right[] {
  const may = (command: string, ...categories: string[]) =>
    rules.reduce((so, rule) => {
      const names = [command, '@all', ...categories]
      return names.includes(rule.slice(1)) && /^[+-]/.test(rule) ? rule.startsWith('+') : so
    }, false)
  const reaches = (sigils: readonly string[], name: string) =>
    sigils.some((sigil) =>
      rules.some((rule) => rule.startsWith(sigil) && matchesGlob(rule.slice(sigil.length), name)),
    )
  const rights: Right[] = []
  const add = (is: boolean, name: string, ...by: string[]) => {
    if (is) rights.push({ name, by })
  }
  for (const key of KEYS) {
    const writes = reaches(['~', '%W~'], key)
    const reads = writes || reaches(['%R~'], key)
    add(reads && may('get', '@string', '@read'), `get ${key}`, `read:${key}`, `write:${key}`)
    add(writes && may('set', '@string', '@write'), `set ${key}`, `write:${key}`)
    add(writes && may('del', '@keyspace', '@write'), `del ${key}`, `write:${key}`)
    add(reaches(['&'], key) && may('publish', '@pubsub'), `publish ${key}`, `channel:${key}`)
  }
  // A name that no scope of these tests has: only one for all keys covers it.
  add(may('scan', '@keyspace', '@read'), 'scan', 'read:unnamed', 'write:unnamed')
  add(may('eval', '@scripting'), 'eval', 'script')
  // These reach keys beyond the patterns, or the server itself.
  add(may('sort', '@list', '@set', '@sortedset', '@write', '@dangerous'), 'sort')
  add(may('keys', '@keyspace', '@read', '@dangerous'), 'keys')
  add(may('copy', '@keyspace', '@write'), 'copy')
  add(may('function|load', '@scripting', '@write'), 'function|load')
  for (const command of ['config|set', 'acl|setuser']) add(may(command, '@admin', '@dangerous'), command)
  return rights
}

const redis: RightsOfKind = {
  type: 'redis',
  config: { host: 'redis.example.com', password: 'change-me' },
  names: { prefix: KEYS.slice(0, 5), key: KEYS.slice(0, 5), name: KEYS.slice(0, 5) },
  forms: ['write:<key>', 'write', 'channel', 'channel:<name>*', 'read:*'],
  open: () => (scopes) => rightsOfRules(rulesFor(scopes)),
}

export const servers: readonly RightsOfKind[] = [
  kubernetes,
  ldap,
  mqtt,
  mysqlOf('read-write'),
  mysqlOf('read-only'),
  postgresOf('read-write'),
  postgresOf('read-only'),
  rabbitmq,
  redis,
]
