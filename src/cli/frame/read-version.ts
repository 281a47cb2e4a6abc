import { installation } from '../../installation.ts'

/** The version of this command. */
export function readVersion(): string {
  return installation.version
}
