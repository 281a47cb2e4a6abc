import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Notice, shown } from '../../src/domain/notice.ts'
import { Secret } from '../../src/domain/secret.ts'
import { openReceivers, type ReceiverSettings } from '../../src/notify/open-receivers.ts'
import { makeCertificates } from '../support/certificates.ts'
import { hasSmtpServer, type SmtpServer, startSmtpServer } from '../support/smtp-server.ts'

const ISSUER = 'https://mayfly.test'
const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
const HOSTILE = shown(
  '</b>\r\nBcc: all@example.com <!channel> <https://evil.example|here> @here *x* \u202e"\\',
)
const NOTICE: Notice = {
  id: 'msg_06e3jz0c7rv3cbb5t0b8kq1n4m',
  type: 'request.waiting',
  at: Date.UTC(2026, 10, 24),
  title: `deploy-bot wants more scopes ${HOSTILE}`,
  lines: [`reason given: ${HOSTILE}`],
  data: { requests: [{ agent: 'deploy-bot', reason: HOSTILE }] },
}

function open(settings: ReceiverSettings, lookup = async () => ['127.0.0.1']) {
  const [receiver] = openReceivers([settings], { lookup, issuer: ISSUER })
  if (receiver === undefined) throw new Error('no receiver')
  return (signal = AbortSignal.timeout(10_000)) => receiver.send(NOTICE, signal)
}
const outcome = (sending: Promise<void>) =>
  sending.then(
    () => 'taken',
    (error: { reason?: string }) => error.reason,
  )

describe('over HTTP', () => {
  let server: Server
  let url: string
  let status = 200
  let isSilent = false
  const got: { headers: IncomingHttpHeaders; body: string }[] = []
  beforeAll(async () => {
    server = createServer((request, reply) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        got.push({ headers: request.headers, body: Buffer.concat(parts).toString() })
        if (!isSilent) reply.writeHead(status, { location: 'http://127.0.0.1:1/' }).end('anything')
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  })
  afterEach(() => {
    got.length = 0
    status = 200
    isSilent = false
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  const webhook = (more: object = {}) =>
    open({ kind: 'webhook', name: 'ops', url, secret: new Secret(SECRET), local: true, ...more })
  const slack = () => open({ kind: 'slack', name: 'chat', url: new Secret(url), local: true })

  test('a webhook is one that the library of Standard Webhooks verifies', async () => {
    await webhook()()
    const { headers, body } = got[0] ?? { headers: {}, body: '' }
    const given = headers as Record<string, string>
    const payload = new Webhook(SECRET).verify(body, given)
    expect(payload).toEqual({
      type: 'request.waiting',
      timestamp: '2026-11-24T00:00:00.000Z',
      issuer: ISSUER,
      data: { ...NOTICE.data, text: [NOTICE.title, ...NOTICE.lines].join('\n') },
    })
    expect(given).toMatchObject({ 'webhook-id': NOTICE.id, 'content-type': 'application/json' })
    expect(() => new Webhook(SECRET).verify(`${body} `, given)).toThrow('No matching signature')
  })

  test('hostile text is no markup in a message for Slack', async () => {
    await slack()()
    const { text, ...how } = JSON.parse(got[0]?.body ?? '')
    expect(text).not.toMatch(/[<>]|@(?!\u200b)|\r|\u202e/)
    expect(text).toContain('&lt;!channel&gt; &lt;https://evil.example|here&gt;')
    expect(text.split('\n')).toHaveLength(3)
    expect(how).toEqual({
      mrkdwn: false,
      parse: 'none',
      link_names: false,
      unfurl_links: false,
      unfurl_media: false,
    })
  })

  test.each([
    [200, 'taken'],
    [204, 'taken'],
    [299, 'taken'],
    [302, 'misconfigured'],
    [400, 'refused'],
    [410, 'refused'],
    [429, 'refused'],
    [500, 'refused'],
  ])('status %i: %s', async (given, expected) => {
    status = given
    expect(await outcome(webhook()())).toBe(expected)
  })

  test('a receiver that is silent, or not there, is given up', async () => {
    isSilent = true
    const ending = new AbortController()
    const sending = outcome(webhook()(ending.signal))
    await expect.poll(() => got.length).toBe(1)
    ending.abort()
    expect(await sending).toBe('timeout')
    expect(await outcome(webhook({ url: 'http://127.0.0.1:1/' })())).toBe('unreachable')
  })

  test('nothing goes to this machine, or to its metadata, unless it is marked local', async () => {
    expect(await outcome(webhook({ local: false })())).toBe('misconfigured')
    const named = { url: url.replace('127.0.0.1', 'ops.example.com'), local: false }
    expect(await outcome(webhook(named)())).toBe('misconfigured')
    const settings = { kind: 'webhook', name: 'ops', secret: new Secret(SECRET), local: true } as const
    const metadata = open({ ...settings, url: 'http://ops.example.com/' }, async () => ['169.254.169.254'])
    expect(await outcome(metadata())).toBe('misconfigured')
    expect(got).toEqual([])
  })
})

describe.skipIf(!hasSmtpServer)('by mail (needs python3-aiosmtpd)', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mayfly-mail-'))
  const trusted = getCACertificates('default')
  const servers: SmtpServer[] = []
  let files: { cert: string; key: string }
  beforeAll(() => {
    const { server } = makeCertificates(directory, 'mail.example.com')
    setDefaultCACertificates([...trusted, server.ca])
    files = { cert: join(directory, 'server.pem'), key: join(directory, 'server.key') }
  })
  afterAll(async () => {
    setDefaultCACertificates(trusted)
    await Promise.all(servers.map((server) => server.stop()))
    rmSync(directory, { recursive: true })
  })

  async function start(mode?: 'starttls' | 'implicit') {
    const server = await startSmtpServer(mode && { mode, ...files })
    servers.push(server)
    return server
  }
  const mail = ({ port }: SmtpServer, more: Partial<Extract<ReceiverSettings, { kind: 'smtp' }>> = {}) =>
    open({
      kind: 'smtp',
      name: 'mail',
      host: 'mail.example.com',
      port,
      tls: 'required',
      login: { user: 'mayfly', password: new Secret('right secret') },
      from: 'Mayfly <mayfly@example.com>',
      to: ['ops@example.com', 'more@example.com'],
      local: true,
      ...more,
    })

  test('goes to a local server without TLS and password; hostile text begins no header', async () => {
    const server = await start()
    await mail(server, { tls: 'none', login: undefined })()
    await expect.poll(() => server.mails.length).toBe(1)
    const [got] = server.mails
    expect(got).toMatchObject({ from: 'mayfly@example.com', to: ['ops@example.com', 'more@example.com'] })
    const [head = ''] = (got?.data ?? '').split(/\r?\n\r?\n/)
    expect(head).not.toMatch(/^bcc:/im)
    expect(head).toMatch(/^Subject: .*/m)
    expect(head).toContain('Message-ID: <msg_06e3jz0c7rv3cbb5t0b8kq1n4m@mayfly.test>')
    expect(head).toContain('Auto-Submitted: auto-generated')
    expect(head).toContain('Content-Type: text/plain; charset=utf-8')
  })

  test.each(['starttls', 'implicit'] as const)('logs in over TLS: %s', async (mode) => {
    const server = await start(mode)
    const tls = mode === 'starttls' ? 'required' : 'implicit'
    await mail(server, { tls })()
    await expect.poll(() => server.mails.map(({ user }) => user)).toEqual(['mayfly'])
    const wrong = { user: 'mayfly', password: new Secret('wrong') }
    expect(await outcome(mail(server, { tls, login: wrong })())).toBe('refused')
    // Its certificate has another name.
    expect(await outcome(mail(server, { tls, host: 'other.example.com' })())).toBe('misconfigured')
    expect(server.mails).toHaveLength(1)
  })

  test('sends no password to a server without STARTTLS', async () => {
    const server = await start()
    expect(await outcome(mail(server)())).toBe('misconfigured')
    expect(server.mails).toEqual([])
  })

  test('is not taken where all recipients are refused, or nobody listens', async () => {
    const server = await start()
    const plain = { tls: 'none', login: undefined } as const
    expect(await outcome(mail(server, { ...plain, to: ['nobody@example.com'] })())).toBe('refused')
    expect(await outcome(mail({ ...server, port: 1 }, plain)())).toBe('unreachable')
    expect(await outcome(mail(server, { ...plain, local: false })())).toBe('misconfigured')
  })
})
