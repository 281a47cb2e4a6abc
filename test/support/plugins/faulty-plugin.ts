import { join } from 'node:path'
import Type from 'typebox'
import {
  type Backend,
  BackendError,
  defineKind,
  secretField,
  servePlugin,
  upstreamField,
} from '../../../src/plugin-sdk/plugin.ts'
import { newCertificate } from '../../../src/plugins/process/certificate.ts'

/**
 * A kind without an upstream, which breaks the protocol as the variable FAULT says, or as the one scope of an issue says. Its
 * credentials are in its memory, so they show whether a process is the same.
 */
const { FAULT = '', PLUGIN_UNIX_SOCKET_DIR: directory = '' } = process.env

/** Changes the line of the handshake on its way. */
function alterLine(alter: (line: string) => string): void {
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = ((line: string) => write(alter(line))) as typeof process.stdout.write
}

const field = (at: number, value: string) => (line: string) =>
  `${line
    .trim()
    .split('|')
    .map((old, index) => (index === at ? value : old))
    .join('|')}\n`

const BEFORE: Readonly<Record<string, () => void>> = {
  exit: () => process.exit(3),
  silent: () => alterLine(() => ''),
  words: () => alterLine(() => 'hello\n'),
  'long line': () => alterLine(() => 'x'.repeat(1_000_000)),
  version: () => alterLine(field(1, '2')),
  tcp: () => alterLine(field(2, 'tcp')),
  'no certificate': () => alterLine(field(5, '')),
  'other certificate': () => {
    const other = Buffer.from(newCertificate(Date.now()).raw).toString('base64')
    alterLine(field(5, other))
  },
  'socket outside': () => alterLine(field(3, process.env['OUTSIDE'] ?? '')),
  'no socket': () => alterLine(field(3, join(directory, 'none'))),
  stubborn: () => {
    process.on('SIGTERM', () => undefined)
    process.exit = (() => undefined) as never
  },
}

const flood = () => {
  while (process.stdout.write('x'.repeat(65_536)));
  process.stdout.once('drain', flood)
}

const hold = () => {
  for (;;);
}

const held: Buffer[] = []
const known = new Set<string>()
const SECRET = 'the-secret-of-an-agent'

/** What an issue with the scope `fault:<name>` answers. */
const ANSWERS: Readonly<Record<string, (secret: string) => object>> = {
  crash: () => process.exit(7),
  hang: hold,
  nothing: () => ({}),
  both: () => ({ secret: SECRET, fields: { a: 'b' } }),
  'empty-fields': () => ({ fields: { a: '' } }),
  nested: () => ({ fields: { a: { b: 'c' } } }),
  names: () => ({ fields: { 'LD PRELOAD': 'x' } }),
  late: () => ({ secret: SECRET, upstreamExpiresAt: Date.now() + 10 * 365 * 86_400_000 }),
  past: () => ({ secret: SECRET, upstreamExpiresAt: Date.now() - 1 }),
  long: () => ({ secret: 'x'.repeat(100_000) }),
  'too-long': () => ({ secret: 'x'.repeat(300_000) }),
  handle: () => ({ secret: SECRET, handle: { a: 'x'.repeat(9_000) } }),
  taken: () => ({ secret: SECRET, handle: { credential_id: 'cred_other' } }),
  facts: () => ({ secret: SECRET, facts: { a: `it is ${SECRET}` } }),
  'field-facts': () => ({
    fields: { username: 'mf_user', password: 'the-password', url: 'https://mf_user:the-password@host' },
    facts: { a: 'it is the-password' },
  }),
  'encoded-facts': () => ({
    fields: { username: 'mf_user', password: 'the-password' },
    facts: { a: Buffer.from('the-password').toString('base64') },
  }),
  'user-facts': () => ({
    fields: { username: 'mf_user', password: 'the-password' },
    facts: { user: 'mf_user' },
  }),
  'config-facts': (secret) => ({ secret: SECRET, facts: { a: secret } }),
  memory: () => {
    try {
      // Twice the limit, and not all that the machine has.
      while (held.length < 100) held.push(Buffer.alloc(16_777_216, 1))
      return { secret: SECRET }
    } catch {
      // Node either throws, or ends.
      process.exit(9)
    }
  },
  tells: (secret) => {
    process.stderr.write(`my login is ${secret}\u001b[31m\n`)
    throw new BackendError('denied', `The login ${secret} was\u001b[31m refused.\n${'x'.repeat(5_000)}`, {
      detail: `detail ${secret}`,
    })
  },
  throws: (secret) => {
    throw new Error(`no fault of the protocol, but ${secret}`)
  },
  sees: () => ({
    fields: { environment: Object.keys(process.env).sort().join(' ') || 'nothing', cwd: process.cwd() },
  }),
}

const open = async ({ token }: { token: string }): Promise<Backend> => {
  if (FAULT === 'flood') flood()
  if (token === 'refused') throw new BackendError('misconfigured', 'The token is "refused".')
  return {
    check: async () => [`one\nwarning of ${token}`],
    async issue({ credentialId, scopes }) {
      known.add(credentialId)
      const answer = ANSWERS[scopes[0]?.replace('fault:', '') ?? '']?.(token) ?? { secret: SECRET }
      return { handle: { number: known.size }, facts: { run: directory }, ...answer }
    },
    async revoke({ id, number }) {
      if (id === undefined && number === undefined) throw new Error('no handle')
      known.delete(String(id))
    },
    recover: (id) => ({ id }),
    [Symbol.asyncDispose]: async () => undefined,
  }
}

BEFORE[FAULT]?.()
servePlugin(
  defineKind({
    type: FAULT === 'other kind' ? 'other' : 'faulty',
    title: 'A kind with faults',
    version: '1.2.3',
    config: Type.Object(
      {
        url: Type.String(upstreamField({ default: 'https://faulty.example' })),
        token: Type.String(secretField({})),
        ...(FAULT === 'pattern' ? { bad: Type.String({ pattern: '^(a+)+$' }) } : {}),
      },
      { additionalProperties: false },
    ),
    revocation: 'exact',
    scopes: {
      forms: [
        { form: 'fault:<name>', gives: 'see a fault' },
        { form: 'works', gives: 'see that it works' },
      ],
      help: 'fault and its name, or works.',
    },
    open,
  }),
)
