import type { Readable } from 'node:stream'
import type { Host } from '../../backends/kind.ts'
import { cleanMessage, type Hide } from '../text.ts'

/** A plugin that writes without end is slowed down by its full pipe, and costs the server no more than this. */
const PAUSE_MS = 20
const LONGEST_LINE = 8_192
const LONGEST_TEXT = 2_000
const MAX_FIELDS = 32
const LINES_PER_SECOND = 100
/** What `unshare` says when the plugin that it waits for was killed. */
const OF_UNSHARE = 'unshare: sigprocmask unblock failed: Invalid argument'

function readSlowly(stream: Readable, onChunk: (chunk: Buffer) => void): void {
  stream.on('data', (chunk: Buffer) => {
    onChunk(chunk)
    stream.pause()
    setTimeout(() => stream.resume(), PAUSE_MS).unref()
  })
  stream.on('error', () => undefined)
  stream.resume()
}

/** Discards the output, so that the plugin never blocks on a full pipe. */
export function drain(stream: Readable): void {
  readSlowly(stream, () => undefined)
}

/** Puts what a plugin writes to its standard error into our log: lines of hclog with their level and fields, others as they are. */
export function logLines(stream: Readable, log: Host['log'], plugin: string, hide: () => Hide): void {
  const budget = createBudget((dropped) => log.warn({ plugin, dropped }, 'The plugin writes too many lines.'))
  let rest = ''
  const take = (line: string) => {
    if (line.trim() !== '' && line !== OF_UNSHARE && budget()) writeLine(log, plugin, line, hide())
  }
  const decoder = new TextDecoder()
  readSlowly(stream, (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    // Without its end: a line that never ends must not fill the memory.
    rest = (lines.pop() ?? '').slice(0, LONGEST_LINE)
    for (const line of lines) take(line.slice(0, LONGEST_LINE))
  })
  stream.on('end', () => take(rest))
}

/** Whether another line may be written in this second. */
function createBudget(onDropped: (count: number) => void): () => boolean {
  let second = 0
  let written = 0
  let dropped = 0
  return () => {
    const now = Math.floor(performance.now() / 1_000)
    if (now !== second) {
      if (dropped > 0) onDropped(dropped)
      second = now
      written = 0
      dropped = 0
    }
    written += 1
    if (written > LINES_PER_SECOND) dropped += 1
    return written <= LINES_PER_SECOND
  }
}

function writeLine(log: Host['log'], plugin: string, line: string, hide: Hide): void {
  const entry = readHclog(line)
  const text = entry === undefined ? line : String(entry['@message'] ?? '')
  const level = entry === undefined ? 'warn' : entry['@level']
  const fields = Object.entries(entry ?? {}).filter(([name]) => !name.startsWith('@'))
  const shown = Object.fromEntries(
    fields.slice(0, MAX_FIELDS).map(([name, value]) => [cleanMessage(name, hide), cleanField(value, hide)]),
  )
  const write = level === 'warn' || level === 'error' ? log.warn : log.debug
  write(
    fields.length === 0 ? { plugin } : { plugin, fields: shown },
    cleanMessage(text, hide, LONGEST_TEXT) || 'The plugin wrote an empty line.',
  )
}

/** A line as hclog writes it with `JSONFormat`: "@level", "@message", "@timestamp" and fields. */
function readHclog(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const entry = JSON.parse(line) as Record<string, unknown>
    return typeof entry['@message'] === 'string' ? entry : undefined
  } catch {
    return undefined
  }
}

function cleanField(value: unknown, hide: Hide): unknown {
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  return cleanMessage(typeof value === 'string' ? value : JSON.stringify(value), hide, LONGEST_TEXT)
}
