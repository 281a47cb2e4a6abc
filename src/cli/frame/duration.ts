import { usage } from './failure.ts'

/** The value of a flag, in milliseconds. Throws `CliError` (usage). */
export async function readDuration(flag: string, text: string, mostMs: number, leastMs = 1): Promise<number> {
  const { parseBoundedDuration } = await import('../../domain/duration.ts')
  try {
    return parseBoundedDuration(text, leastMs, mostMs)
  } catch (error) {
    throw usage(`${flag}: ${error instanceof Error ? error.message : ''}.`, `Example: ${flag} 20s.`)
  }
}
