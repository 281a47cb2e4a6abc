export type Path = readonly (string | number)[]

/** What is wrong with a recipe, and where. */
export interface RecipeFault {
  readonly path: Path
  readonly message: string
}

export type Report = (path: Path, message: string) => void
