import { ConfigError, type Fault } from '../../domain/fault.ts'
import { didYouMean } from '../../domain/formats/suggest.ts'
import type { ConfigFile, Path } from '../../files/yaml-file.ts'

export type Shape = Readonly<Record<string, unknown>>

/** Collects every mistake in one file with its line, to report them together. */
export class Faults {
  readonly #file: ConfigFile
  readonly #found: Fault[] = []

  constructor(file: ConfigFile) {
    this.#file = file
  }

  add(path: Path, message: string, what?: 'key' | 'value'): void {
    this.#found.push({ source: this.#file.locate(path, what), message })
  }

  /** Shows a key only if it resembles a known one: the file may be a link to one that holds secrets. */
  unknownKeys(path: Path, value: Shape, known: readonly string[]): void {
    for (const key of Object.keys(value)) {
      if (known.includes(key)) continue
      const meant = didYouMean(key, known)
      const shown = meant === '' ? 'this key' : JSON.stringify(key)
      this.add([...path, key], `${shown} is not a field${meant}`, 'key')
    }
  }

  any(): boolean {
    return this.#found.length > 0
  }

  error(): ConfigError {
    return new ConfigError(this.#found)
  }
}
