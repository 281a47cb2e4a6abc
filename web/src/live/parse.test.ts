import { expect, test } from 'vitest'
import { createParser, type StreamEvent } from './parse.ts'

/** As the server writes it: how soon to come back, a place, an entry, a sign of life, and a reset. */
const STREAM = [
  'retry: 1000\n\n',
  'id: aud_0\nid: aud_1\nevent: agent.created\ndata: {"id":"aud_1"}\n\n',
  ': keep\nid: aud_2\n\n',
  'id: aud_3\nevent: reset\ndata:\n\n',
].join('')

function read(...texts: readonly string[]): StreamEvent[] {
  const events: StreamEvent[] = []
  const parse = createParser((event) => events.push(event))
  for (const text of texts) parse(text)
  return events
}

const EVENTS = [
  { id: 'aud_1', event: 'agent.created', data: '{"id":"aud_1"}' },
  { id: 'aud_2', event: 'message', data: undefined },
  { id: 'aud_3', event: 'reset', data: '' },
]

test('entries, places and resets', () => {
  expect(read(STREAM)).toEqual(EVENTS)
})

test('wherever the text is cut', () => {
  expect(read(...STREAM)).toEqual(EVENTS)
})

test('what is not whole yet is no event, and neither is a comment', () => {
  expect(read('id: aud_1\nevent: agent.created\ndata: {}\n', ': keep')).toEqual([])
  expect(read(': keep\n\n', 'retry: 1000\n\n', '\n\n')).toEqual([])
})

test('data of several lines is one text', () => {
  expect(read('data: a\ndata: b\n\n')).toEqual([{ id: undefined, event: 'message', data: 'a\nb' }])
})
