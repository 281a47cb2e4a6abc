import { pino } from 'pino'
import { cleanValue, escapeControls, hideValues } from './filter.ts'
import { openLineSink } from './line-sink.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  /** Returns a log that adds these fields to every line. */
  child(fields: object): Log
}

/** The log of the server, whose level a reload may change. */
export interface Logger extends Log {
  /** Also of every child. */
  setLevel(level: LogLevel): void
}

export interface Destination {
  write(line: string): unknown
  readonly isTTY?: boolean
}

export interface LoggerOptions {
  readonly level: LogLevel | 'silent'
  readonly format: 'json' | 'pretty'
  /** Standard output if absent. */
  readonly destination?: Destination
  /** The variable NO_COLOR is set: no colours, even on a terminal. */
  readonly noColor?: boolean
}

/**
 * Writes lines of JSON or lines for people, each before the call returns. Hides secrets by the name of their field at any depth, and by their form in
 * the finished line, which includes the message.
 */
export function createLogger(options: LoggerOptions): Logger {
  const target =
    options.destination ??
    openLineSink(1, { onLost: (lines) => logger.warn({ lines }, 'lines of the log were lost') })
  const terminal = options.destination?.isTTY ?? (options.destination === undefined && process.stdout.isTTY)
  const colour = terminal === true && options.noColor !== true
  const finish = (line: string): string => {
    const safe = escapeControls(hideValues(line))
    return options.format === 'json' ? safe : prettyLine(safe, colour)
  }
  const logger = pino(
    {
      // `threshold` decides: a child of pino would keep the level that it was born with.
      level: 'debug',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // Errors are plain objects here; pino's own serializer would fold their causes into text.
      serializers: { err: (value: unknown) => value },
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: finish },
    },
    { write: (line: string) => target.write(line) },
  )
  const threshold = { level: options.level }
  return Object.assign(wrap(logger, threshold), {
    setLevel: (level: LogLevel) => {
      threshold.level = level
    },
  })
}

const RANKS = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 } as const

interface Threshold {
  readonly level: keyof typeof RANKS
}

function wrap(logger: pino.Logger, threshold: Threshold): Log {
  const at = (level: LogLevel) => (fields: object, message: string) => {
    if (RANKS[level] >= RANKS[threshold.level]) logger[level](cleanFields(fields), hideValues(message))
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => wrap(logger.child(cleanFields(fields)), threshold),
  }
}

const TAKEN = new Set(['level', 'time', 'msg'])

/** An error instead of fields becomes `err`; fields with names of pino's own get a `_`. */
function cleanFields(fields: object): Record<string, unknown> {
  const clean = cleanValue(fields instanceof Error ? { err: fields } : fields)
  if (typeof clean !== 'object' || clean === null) return { value: clean }
  return Object.fromEntries(
    Object.entries(clean).map(([key, value]) => [TAKEN.has(key) ? `${key}_` : key, value]),
  )
}

const COLOURS: Record<string, string> = { debug: '90', info: '32', warn: '33', error: '31' }

/** `12:00:00.000 INFO message key=value …`, always one line. */
function prettyLine(line: string, colour: boolean): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as Record<string, unknown>
  const paint = (code: string, text: string) => (colour ? `\u001b[${code}m${text}\u001b[0m` : text)
  const label = String(level).toUpperCase().padEnd(5)
  const parts = [
    paint('90', String(time).slice(11, 23)),
    paint(COLOURS[String(level)] ?? '0', label),
    plain(String(msg)),
  ]
  for (const [key, value] of Object.entries(rest)) parts.push(`${paint('36', plain(key))}=${shown(value)}`)
  return `${parts.join(' ')}\n`
}

/** The JSON form without its quotes: escapes stay escaped. */
function plain(text: string): string {
  return escapeControls(JSON.stringify(text).slice(1, -1)).replaceAll('\\"', '"')
}

function shown(value: unknown): string {
  if (typeof value === 'string' && /^[\w@%+:,./[\]-]+$/.test(value)) return value
  return escapeControls(JSON.stringify(value))
}
