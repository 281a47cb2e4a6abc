import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { AuditEntry } from '../../domain/audit-entry.ts'
import { createEventStream } from './event-stream.ts'

const PLACE = '0'.repeat(26)
const LATER = `${'0'.repeat(25)}1`

function entryWith(text: string): AuditEntry {
  return {
    id: PLACE,
    at: 0,
    action: 'agent.created',
    outcome: 'ok',
    actor: 'local',
    agentId: null,
    agentName: null,
    backend: null,
    credentialId: null,
    runId: null,
    scopes: null,
    ttlMs: null,
    ipAddress: null,
    userAgent: text,
    authMethod: null,
    requestId: null,
    metadata: null,
    details: null,
  }
}
const placed = (text: string, place = PLACE) => [{ entry: entryWith(text), place }]

async function readAll(stream: ReturnType<typeof createEventStream>): Promise<string> {
  let text = ''
  stream.body.on('data', (chunk: Buffer) => {
    text += chunk
  })
  for (let n = 0; n < 20; n += 1) await setImmediate()
  return text
}

it('drops what a reader does not read, keeps none of it, and says so once it reads again', async () => {
  const stream = createEventStream()
  for (let n = 0; n < 100; n += 1) stream.entries(placed('x'.repeat(60_000)), true)
  // The last place is the one from which the reader goes on.
  stream.entries(placed('y', LATER), true)
  const text = await readAll(stream)
  // Of six megabytes: what the stream holds by itself.
  expect(text.length).toBeLessThan(200_000)
  expect(text).toMatch(new RegExp(`id: aud_${LATER}\nevent: reset\ndata: \\{\\}\n\n$`))
  stream.keep(LATER)
  const rest = readAll(stream)
  stream.entries(placed('z', LATER), true)
  expect(await rest).toContain('"user_agent":"z"')
})

it('lets no text of an entry end its event', async () => {
  const stream = createEventStream()
  stream.entries(placed('a\n\nevent: forged\r\ndata: {}\u2028\0'), true)
  const text = await readAll(stream)
  expect(text.split('\n\n').filter((one) => one.startsWith('id:'))).toHaveLength(1)
  expect(text).not.toMatch(/^event: forged/m)
})

it('ends at once, whatever waits', async () => {
  const stream = createEventStream()
  for (let n = 0; n < 5; n += 1) stream.entries(placed('x'.repeat(60_000)), true)
  stream.end()
  stream.entries(placed('after the end'), true)
  const ended = new Promise((resolve) => stream.body.once('end', resolve))
  expect(await readAll(stream)).not.toContain('after the end')
  await ended
})
