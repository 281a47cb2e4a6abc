import { installation } from '../installation.ts'

/** The version in package.json. */
export const VERSION = installation.version
