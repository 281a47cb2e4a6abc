import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import {
  button,
  enterByLink,
  loginLink,
  openWindow,
  originOf,
  registerPasskey,
  untilLive,
  type Window,
} from '../support/console.ts'
import { newEnrollee } from '../support/enrollee.ts'
import { type Hands, handsOf, KEYBOARD, MOUSE } from '../support/hands.ts'
import { newSigner } from '../support/identity-tokens.ts'
import { exchange, workload } from '../support/keyless.ts'

/** Decisions on requests that come in while one looks at the page. */
const ISSUER = 'https://agents.test'
const AUDIENCE = 'https://mayfly.test'
const acme = newSigner('ES256')
let app: TestApp
let origin: string
let operator: Window
beforeAll(async () => {
  await buildWeb()
  app = await startApp({
    ownIssuer: true,
    yaml: JSON.stringify({
      policies: [{ name: 'ci', pattern: 'ci-*', scopes: ['orders:*'], auto_approve: false }],
      platforms: [{ name: 'acme', issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [acme.jwk] } }],
    }),
  })
  origin = originOf(app)
  await app.newBackend({ name: 'orders' })
  operator = await openWindow()
  await enterByLink(operator, await loginLink(app))
  await registerPasskey(operator, 'laptop')
})
afterAll(async () => {
  await operator?.context.close()
  await app?.close()
})
beforeEach(async () => {
  const { page } = operator
  await page.unrouteAll()
  for (const { id } of (await app.local.get('/v1/admin/pending')).body)
    await app.local.post(`/v1/admin/pending/${id}/reject`)
  await page.goto(`${origin}/console/pending`)
  await page.getByText('Nothing waits for a decision').waitFor()
  await untilLive(page)
  // A reload would take it away.
  await page.evaluate('window.isSamePage = true')
})

interface Asked {
  readonly agent: NewAgent
  readonly id: string
}

/** An agent that has `orders:read` asks for more. */
async function ask(name: string, scopes: readonly string[]): Promise<Asked> {
  const agent = await app.newAgent({ name, scopes: ['orders:read'] })
  const reply = await agent.client.post('/v1/request', { scopes, reason: 'the release of tonight' })
  expect([reply.status, reply.text]).toEqual([200, reply.text])
  return { agent, id: reply.body.id }
}

const row = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(name) }).first()

/** Opens the request that has just come in, which must appear by itself. */
async function open(page: Page, name: string, hands: Hands): Promise<void> {
  await row(page, name).waitFor()
  if (hands === MOUSE) await row(page, name).click()
  else {
    // Rows that are there keep their place, and the first has the cursor.
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
  }
  await page.getByRole('article').getByText('the release of tonight').waitFor()
  expect(await page.evaluate('window.isSamePage')).toBe(true)
}

async function decide(page: Page, name: string | RegExp, key: string, hands: Hands): Promise<void> {
  if (hands === MOUSE) await page.getByRole('article').getByRole('button', { name }).click()
  else await page.keyboard.press(key)
  await page.getByRole('dialog').waitFor()
}

const statusOf = async (id: string): Promise<string> =>
  (await app.local.get(`/v1/admin/pending/${id}`)).body.status

test.each(handsOf(KEYBOARD))(
  'A approves what has just come in, after the passkey, by $name',
  async (hands) => {
    const { page, complaints } = operator
    const name = hands === MOUSE ? 'deployer' : 'releaser'
    const { agent, id } = await ask(name, ['orders:write', 'admin:audit:read'])
    await open(page, name, hands)
    await decide(page, /^Approve$/, 'a', hands)
    await page.getByRole('dialog').getByText('You confirm with your passkey.').waitFor()
    // The request that the passkey has confirmed is held back on its way.
    const held = Promise.withResolvers<void>()
    const sent = Promise.withResolvers<void>()
    await page.route('**/approve', async (route) => {
      if (route.request().headers()['mayfly-confirmation'] === undefined) return route.continue()
      sent.resolve()
      await held.promise
      return route.continue()
    })
    if (hands === MOUSE) await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
    else await page.keyboard.press('Enter')
    await sent.promise
    await page.getByText('Sent, waiting for the answer…').waitFor()
    expect(await statusOf(id)).toBe('pending')
    expect(await page.getByText(/is approved|^approved$/).count()).toBe(0)
    expect(await page.locator('[role=row]', { hasText: name }).count()).toBe(1)
    held.resolve()
    await page.getByText(`${name} is approved.`).waitFor()
    await page.unroute('**/approve')
    await page.getByText('Nothing waits for a decision').waitFor()
    const issued = await agent.client.post('/api/v1/credentials', {
      backend: 'orders',
      scopes: ['orders:write'],
    })
    expect([issued.status, issued.text]).toEqual([201, issued.text])
    const [entry] = (await app.local.get('/v1/admin/audit?action=enrollment.approved&limit=1')).body
    expect(entry).toMatchObject({
      actor: 'operator:alice@example.com',
      details: { confirmation: { origin } },
    })
    expect(complaints).toEqual([])
  },
)

test.each(handsOf(MOUSE))('D rejects with a reason, which the agent is told, by $name', async (hands) => {
  const { page, complaints } = operator
  const name = hands === MOUSE ? 'curious' : 'nosy'
  const { agent, id } = await ask(name, ['orders:write'])
  await open(page, name, hands)
  await decide(page, /^Reject/, 'd', hands)
  const reason = page.getByLabel('Reason')
  await hands.write(reason, 'Ask for one table, not for all.')
  // What is refused keeps what was typed.
  await page.route('**/reject', (route) => route.abort())
  await hands.press(page.getByRole('dialog').getByRole('button', { name: 'Reject' }))
  await page.getByRole('dialog').getByRole('alert').waitFor()
  expect(await reason.inputValue()).toBe('Ask for one table, not for all.')
  expect(await statusOf(id)).toBe('pending')
  await page.unroute('**/reject')
  await hands.press(page.getByRole('dialog').getByRole('button', { name: 'Reject' }))
  await page.getByText(`${name} is rejected.`).waitFor()
  const told = await agent.client.get(`/v1/request/${id}`)
  expect(told.body).toMatchObject({ status: 'rejected', decision_note: 'Ask for one table, not for all.' })
  expect(complaints).toEqual([])
})

test.each(handsOf(KEYBOARD))('E approves fewer scopes, for a shorter time, by $name', async (hands) => {
  const { page, complaints } = operator
  const name = hands === MOUSE ? 'ci-build' : 'ci-deploy'
  const enrollee = newEnrollee('Ed25519', app.url)
  const reply = await app.as(undefined).post('/v1/enroll', {
    name,
    public_key: enrollee.publicKey,
    scopes: ['orders:read', 'orders:write'],
    metadata: { why: 'the release of tonight' },
  })
  const { id } = reply.body
  await open(page, name, hands)
  await decide(page, /^Approve less/, 'e', hands)
  await hands.tick(page.getByLabel('orders:write'))
  await hands.choose(page.getByLabel('How long the agent lives'), '1h')
  await hands.press(button(page, 'Approve this much'))
  await page.getByText(`${name} is approved.`).waitFor()
  const proof = await enrollee.prove(id, app.core.store.now())
  const collected = await eventually(async () => {
    const poll = await app.as(undefined).get(`/v1/enroll/${id}/status`, { 'enrollment-proof': proof })
    expect(poll.body.status).toBe('approved')
    return enrollee.open(poll.body.sealed, proof)
  })
  expect(collected.scopes).toEqual(['orders:read'])
  const { created_at, expires_at } = (await app.local.get(`/v1/admin/agents/${name}`)).body
  expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(3_600_000)
  expect(complaints).toEqual([])
})

test.each(handsOf(MOUSE))(
  'an agent of a platform gets the scopes that a person names, by $name',
  async (hands) => {
    const { page, complaints } = operator
    const sub = hands === MOUSE ? 'agent-7' : 'agent-8'
    const claims = { why: 'the release of tonight', html: '<b>bold</b>', steering: 'a\u202eb\u001b[2J' }
    const logIn = async () =>
      (await exchange(app, workload(app, { iss: ISSUER, aud: AUDIENCE, sub, ...claims }, 300, acme))).body
    expect((await logIn()).scope).toBe('')
    await open(page, 'acme-', hands)
    const article = page.getByRole('article')
    await article.getByText(sub, { exact: true }).waitFor()
    await article.getByText('<b>bold</b>').waitFor()
    const text = (await article.textContent()) ?? ''
    for (const steering of ['\u202e', '\u001b']) expect(text).not.toContain(steering)
    expect(await article.locator('b').count()).toBe(0)
    await decide(page, 'Give scopes', 'a', hands)
    await page.getByRole('button', { name: /^Give these scopes.*Choose at least one scope/ }).waitFor()
    await hands.write(page.getByRole('textbox', { name: 'Scopes' }), 'orders:read')
    await hands.press(button(page, 'Give these scopes'))
    await page.getByText(/^acme-[a-z2-7]{12} is approved\.$/).waitFor()
    await page.getByText('Nothing waits for a decision').waitFor()
    expect((await logIn()).scope).toBe('orders:read')
    expect(complaints).toEqual([])
  },
)
