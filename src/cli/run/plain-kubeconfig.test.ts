import { expect, test } from 'vitest'
import { plainKubeconfig } from './plain-kubeconfig.ts'

const CONFIG = `apiVersion: v1
kind: Config
current-context: c
clusters: [{ name: c, cluster: { server: "https://k8s.example:6443", certificate-authority-data: AAAA } }]
users: [{ name: u, user: { token: abc } }]
contexts: [{ name: c, context: { cluster: c, user: u, namespace: shop } }]
`
const withUser = (user: string) => CONFIG.replace('{ token: abc }', user)
const withCluster = (more: string) => CONFIG.replace('certificate-authority-data: AAAA', more)

test('keeps a cluster and a login, as JSON', async () => {
  expect(JSON.parse(await plainKubeconfig(CONFIG))).toMatchObject({
    'current-context': 'c',
    clusters: [{ cluster: { server: 'https://k8s.example:6443' } }],
    users: [{ name: 'u', user: { token: 'abc' } }],
  })
})

test.each([
  ['a program to run', withUser('{ exec: { apiVersion: v1, command: touch, args: [owned] } }')],
  ['one under an escaped key', withUser('{ "ex\\u0065c": { command: touch } }')],
  ['one behind an alias', `x: &x { exec: {} }\n${withUser('*x')}`],
  ['one merged in', withUser('{ <<: { exec: { command: touch } } }')],
  ['an old plugin', withUser('{ auth-provider: { name: gcp } }')],
  ['a file to send', withUser('{ tokenFile: /etc/passwd }')],
  ['a key file', withUser('{ client-key: /root/.ssh/id }')],
  ['a proxy', withCluster('proxy-url: "http://evil.example"')],
  ['no check of the server', withCluster('insecure-skip-tls-verify: true')],
  ['an object for a token', withUser('{ token: { exec: {} } }')],
  ['extensions', `${CONFIG}extensions: []\n`],
  ['two documents', `${CONFIG}---\nusers: [{ name: u, user: { exec: {} } }]\n`],
  ['no object', 'text'],
  ['no YAML', '{'],
  ['nothing', ''],
])('refuses %s', async (_, text) => {
  await expect(plainKubeconfig(text)).rejects.toThrow(/more than a cluster and a login/)
})
