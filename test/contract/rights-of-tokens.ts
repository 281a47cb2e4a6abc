import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import type { Config as GitHubConfig } from '../../src/backends/github/config.ts'
import { accountOf, parseWishes, planToken } from '../../src/backends/github/plan.ts'
import { LEVELS } from '../../src/backends/github/scopes.ts'
import type { Issued } from '../../src/backends/kind.ts'
import { newRequest } from './open-kind.ts'
import { claimsOf, type Right, type RightsOfKind, right, textsOf } from './rights.ts'

/** For a kind without an upstream: issues, and reads the credential. */
const byIssuing =
  (read: (fields: NonNullable<Issued['fields']>) => readonly Right[]): RightsOfKind['open'] =>
  async ({ kind, config, host }) => {
    const backend = await kind.open(config, host)
    return async (scopes) => {
      const { secret, fields } = await backend.issue(newRequest(scopes), new AbortController().signal)
      return read(fields ?? { token: String(secret) })
    }
  }

const jwt: RightsOfKind = {
  type: 'jwt',
  config: { audience: 'orders-api' },
  names: {},
  forms: ['orders:<order>', 'orders', '<area>:<permission>'],
  // A resource server takes a scope as Mayfly does.
  open: byIssuing(({ token }) => textsOf(claimsOf(token).scope).map((scope) => right(scope))),
}

const SUBJECTS = ['a', 'orders', 'orders.a', 'orders.ab', 'orders.a.b', '_INBOX.x', '$JS.API', '$SYS.x']

interface Subjects {
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
}

/** NATS, "Authorization": without a list, everything is allowed. */
const isAllowed = ({ allow, deny = [] }: Subjects, subject: string) => {
  const isIn = (list: readonly string[]) =>
    list.some((one) => (one.endsWith('>') ? subject.startsWith(one.slice(0, -1)) : one === subject))
  return (allow === undefined || isIn(allow)) && !isIn(deny)
}

const nats: RightsOfKind = {
  type: 'nats',
  config: {
    url: 'tls://nats.example.com:4222',
    account: 'ABJHLOVMPA4CI6R5KLNGOB4GSLNIY7IOUPAJC4YFNDLQVIOBYQGUWVLA',
    signing_key: 'SAANJIBNEKGCRUWJCPIWUXFBFJLR36FJTFKGBGKAT7AQXH2LVFNQWZJMQU',
  },
  names: { name: ['a', 'ab', 'a.b', 'a.*'] },
  forms: ['a:pub', '*:sub'],
  open: byIssuing((fields) => {
    const { nats: claims } = claimsOf(fields['jwt'])
    return (['pub', 'sub'] as const).flatMap((permission) =>
      SUBJECTS.filter((subject) => isAllowed(claims[permission], subject)).map((subject) =>
        right(`${subject}:${permission}`),
      ),
    )
  }),
}

const ACTIONS = { pull: ['pull', 'push'], push: ['push'], delete: ['delete'] }

const registry: RightsOfKind = {
  type: 'registry',
  config: {
    address: 'https://registry.example.com',
    repositories: ['acme/app', 'acme/app-web', 'acme/lib', 'other'],
  },
  names: { repository: ['acme/app', 'acme/app-web', 'acme/lib', 'evil'] },
  forms: ['acme/*:pull', 'acme/app*', '*'],
  open: byIssuing(({ token }) => {
    const access: { name: string; type: string; actions: (keyof typeof ACTIONS)[] }[] = claimsOf(token).access
    return access.flatMap(({ name, type, actions }) =>
      actions.map((action) => {
        const by = ACTIONS[action].map((permission) => `${name}:${permission}`)
        return { name: `${type} ${name}:${action}`, by }
      }),
    )
  }),
}

/** A list of strings of SSH (RFC 4251 §5). */
function stringsOf(bytes: Buffer): Buffer[] {
  const strings: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at)
    strings.push(bytes.subarray(at + 4, end))
    at = end
  }
  return strings
}

/** Type, nonce, key, serial, type, key id and principals (PROTOCOL.certkeys, "ED25519 certificate"). */
function principalsOf(line: string): string[] {
  const blob = Buffer.from(line.split(' ')[1] ?? '', 'base64')
  const lengthAt = (at: number) => 4 + blob.readUInt32BE(at)
  let at = 0
  for (let skipped = 0; skipped < 3; skipped += 1) at += lengthAt(at)
  at += 12
  at += lengthAt(at)
  return stringsOf(blob.subarray(at + 4, at + lengthAt(at))).map(String)
}

const ssh: RightsOfKind = {
  type: 'ssh',
  config: { principals: ['deploy', 'deploy-eu', 'root', 'backup'] },
  names: { principal: ['deploy', 'deploy-eu', 'root', 'evil'] },
  open: byIssuing(({ certificate }) => principalsOf(String(certificate)).map((name) => right(name))),
}

const x509: RightsOfKind = {
  type: 'x509',
  config: {
    names: ['web', 'web-a', '*.example.com', 'spiffe://example.com/web', 'spiffe://example.com/ns/*'],
  },
  names: {
    host: ['web', 'web-a', 'db.example.com', 'x.example.com', 'evil'],
    domain: ['example.com', 'evil.com'],
    path: ['web', 'ns/a', 'ns/ab', 'evil'],
  },
  reaches: (scope, name) =>
    scope.endsWith('*') &&
    name.startsWith(scope.slice(0, -1)) &&
    /^(web|web-a|.+\.example\.com|spiffe:\/\/example\.com\/(web|ns\/.+))$/.test(name),
  open: byIssuing(({ certificate }) => {
    const { subject = '', subjectAltName = '' } = new X509Certificate(String(certificate))
    const named = `${subjectAltName}\n${subject}`.split(/\n|, /).filter((text) => text !== '')
    return named.map((text) => right(text.replace(/^(DNS:|URI:|CN=)/, '')))
  }),
}

const REPOSITORIES = ['web', 'web-a', 'api']
const GRANTED = {
  contents: 'write',
  issues: 'read',
  secrets: 'read',
  workflows: 'write',
  repository_hooks: 'admin',
  administration: 'write',
} as const

const github: RightsOfKind = {
  type: 'github',
  config: {
    app_id: '123456',
    private_key: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
      type: 'pkcs8',
      format: 'pem',
    }),
    owner: 'acme',
  },
  names: { owner: ['acme', 'acme', 'octo'], repo: REPOSITORIES },
  forms: [
    ...[
      'contents',
      'issues',
      'issues:read',
      'workflows',
      'administration:read',
      're*',
      'w*',
      'a*',
      'co*',
      'ad*:read',
    ],
    ...['write', 'admin', '*:read', '*:write', 'repository_hooks:admin'],
  ].map((permission) => `<owner>/<repo>:${permission}`),
  // They also match a level.
  refused: ['acme/web:re*', 'acme/web:w*', 'acme/web:a*'],
  open:
    ({ config }) =>
    async (scopes) => {
      const wishes = parseWishes(scopes)
      const owner = accountOf((config as unknown as GitHubConfig).owner, wishes, {})
      const installation = { id: 1, owner, permissions: GRANTED }
      const plan = await planToken(wishes, {}, installation, async () => REPOSITORIES)
      // GitHub refuses a repository that does not exist.
      const repositories = REPOSITORIES.filter((name) => plan.repositories.includes(name))
      return repositories.flatMap((repository) =>
        Object.entries(plan.permissions).flatMap(([permission, level]) =>
          LEVELS.slice(0, LEVELS.indexOf(level) + 1).map((lower) => {
            const place = `${owner}/${repository}`
            const levels = LEVELS.slice(LEVELS.indexOf(lower))
            const by = levels.flatMap((one) => [`${place}:${permission}:${one}`, `${place}:${one}`])
            return { name: `${place}:${permission}:${lower}`, by }
          }),
        ),
      )
    },
}

export const tokens: readonly RightsOfKind[] = [github, jwt, nats, registry, ssh, x509]
