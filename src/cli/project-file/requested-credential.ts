import type { IssueRequest } from '../../client/wire.ts'
import type { Template } from './template.ts'

/** A file in the private directory of a run and the variable that holds its path. */
export interface RequestedFile {
  readonly variable: string
  readonly fileName: string
  readonly content: Template
  /** The server chose what the file is for, so a content that names programs is refused. */
  readonly isChecked?: true
}

interface RequestedVariable {
  readonly variable: string
  readonly value: Template
  /** Of a kind, where only the next credential shows whether it stays the same. */
  readonly mayLast?: true
}

/** One credential that a command needs, and how it is delivered. */
export interface RequestedCredential {
  /** Its name in the project file, or the backend's name. */
  readonly name: string
  readonly request: IssueRequest
  /**
   * Each field in a variable of its own, such as `<NAME>_PASSWORD`, and the variables of the kind; as by `mayfly get -o env`.
   */
  readonly isSpread: boolean
  readonly env: readonly RequestedVariable[]
  readonly files: readonly RequestedFile[]
}
