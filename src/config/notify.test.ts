import { expect, it } from 'vitest'
import { faultsOf, loadGiven } from '../../test/support/config.ts'

const KEY = `whsec_${Buffer.alloc(32, 7).toString('base64')}\n`
const files = {
  key: KEY,
  url: 'https://hooks.slack.com/services/T/B/hidden\n',
  password: 'hidden\n',
  short: 'whsec_aGlkZGVu',
  odd: 'not-a-key-hidden',
}
const load = (entry: string) => loadGiven({ files, yaml: `notify:\n  - ${entry}\n` })
const faults = async (entry: string) =>
  (await faultsOf({ files, yaml: `notify:\n  - ${entry}\n` })).map(({ message }) => message)

it('is empty by default', async () => {
  expect((await loadGiven()).config.notify).toEqual([])
})

it.each([
  [
    '{ name: ops, webhook: { url: "https://ops.example.com/hook?a=1", secret_file: key } }',
    { kind: 'webhook', name: 'ops', local: false, url: 'https://ops.example.com/hook?a=1' },
  ],
  [
    '{ name: ops, webhook: { url: "http://127.0.0.1:9/hook", secret_file: key, local: true } }',
    { kind: 'webhook', name: 'ops', local: true, url: 'http://127.0.0.1:9/hook' },
  ],
  ['{ name: chat, slack: { url_file: url } }', { kind: 'slack', name: 'chat', local: false }],
  [
    '{ name: mail, smtp: { url: "smtps://me%40example.com@mail.example.com", from: a@example.com, to: b@example.com, password_file: password } }',
    {
      kind: 'smtp',
      host: 'mail.example.com',
      port: 465,
      tls: 'implicit',
      from: 'a@example.com',
      to: ['b@example.com'],
    },
  ],
  [
    '{ name: mail, smtp: { url: "smtp://mail.example.com", from: "Mayfly <a@example.com>", to: [b@example.com, c@example.com] } }',
    { port: 587, tls: 'required', login: undefined, to: ['b@example.com', 'c@example.com'] },
  ],
  [
    '{ name: mail, smtp: { url: "smtp://[::1]:2525/", from: a@example.com, to: b@example.com, local: true } }',
    { host: '::1', port: 2525, tls: 'none' },
  ],
  [
    '{ name: mail, smtp: { url: "smtp://me@localhost", from: a@example.com, to: b@example.com, password_file: password, local: true } }',
    { host: 'localhost', port: 587, tls: 'required' },
  ],
])('accepts %s', async (entry, expected) => {
  const { config } = await load(entry)
  expect(config.notify[0]).toMatchObject(expected)
  expect(JSON.stringify(config.notify)).not.toContain('hidden')
})

it.each([
  ['{ name: "a b", slack: { url_file: url } }', 'notify.0.name: "a b" is not 1 to 64 letters'],
  ['{ name: ops }', 'notify.0: requires one of webhook, smtp, slack, and only one'],
  [
    '{ name: ops, slack: { url_file: url }, webhook: { url: "https://a.example", secret_file: key } }',
    'and only one',
  ],
  ['{ name: ops, slak: { url_file: url } }', '"notify.0.slak" is not a setting (did you mean "slack"?)'],
  ['{ name: ops, slack: { url: "https://x" } }', '"notify.0.slack.url" is not a setting'],
  [
    '{ name: ops, webhook: { url: "http://ops.example.com", secret_file: key } }',
    'notify.0.webhook.url: must start with https:// (http only with "local: true")',
  ],
  ['{ name: ops, webhook: { url: "https://localhost/x", secret_file: key } }', 'add "local: true"'],
  ['{ name: ops, webhook: { url: "https://u:hidden@a.example", secret_file: key } }', 'a user or password'],
  ['{ name: ops, webhook: { url: "ftp://a.example", secret_file: key } }', 'is not a URL such as https://'],
  [
    '{ name: ops, webhook: { url: "https://a.example", secret_file: gone } }',
    'notify.0.webhook.secret_file: the file "gone" does not exist',
  ],
  [
    '{ name: ops, webhook: { url: "https://a.example", secret_file: short } }',
    'whsec_ and base64 of 24 to 64',
  ],
  ['{ name: ops, webhook: { url: "https://a.example", secret_file: odd } }', 'openssl rand -base64 32'],
  ['{ name: ops, slack: { url_file: odd } }', 'notify.0.slack.url_file: is not a URL'],
  [
    '{ name: m, smtp: { url: "smtp://u:hidden@mail.example.com", from: a@b.c, to: a@b.c } }',
    'notify.0.smtp.url: must not contain a password; use password_file',
  ],
  ['{ name: m, smtp: { url: "smtp://u@mail.example.com", from: a@b.c, to: a@b.c } }', 'no password_file'],
  [
    '{ name: m, smtp: { url: "smtps://mail.example.com", from: a@b.c, to: a@b.c, password_file: password } }',
    'but no user',
  ],
  [
    '{ name: m, smtp: { url: "smtp://mail.example.com:0", from: a@b.c, to: a@b.c } }',
    'is not a URL such as smtps',
  ],
  [
    '{ name: m, smtp: { url: "https://mail.example.com", from: a@b.c, to: a@b.c } }',
    'is not a URL such as smtps',
  ],
  ['{ name: m, smtp: { url: "smtp://127.0.0.1", from: a@b.c, to: a@b.c } }', 'add "local: true"'],
  [
    '{ name: m, smtp: { url: "smtp://mail.example.com", from: "a@b.c\\r\\nBcc: x@y.z", to: a@b.c } }',
    'notify.0.smtp.from:',
  ],
  [
    '{ name: m, smtp: { url: "smtp://mail.example.com", from: a@b.c, to: "a@b.c, x@y.z" } }',
    'notify.0.smtp.to:',
  ],
  ['{ name: m, smtp: { url: "smtp://mail.example.com", from: a@b.c, to: [] } }', 'notify.0.smtp.to'],
])('refuses %s', async (entry, message) => {
  const all = await faults(entry)
  expect(all.join('\n')).toContain(message)
  expect(all.join('\n')).not.toContain('hidden')
})

it('refuses a second receiver of the same name, and reports all faults with their places', async () => {
  const yaml =
    'notify:\n  - { name: ops, slack: { url_file: url } }\n  - { name: OPS, slack: { url_file: gone } }\n'
  const found = await faultsOf({ files, yaml })
  expect(found.map(({ source, message }) => [source, message.slice(0, 60)])).toEqual([
    ['m.yaml:3:13', 'notify.1.name: "OPS" is already the name of another receiver'],
  ])
})
