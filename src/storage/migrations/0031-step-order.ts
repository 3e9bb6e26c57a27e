/** The order of a run's steps, for runs that start from one of them. */

// Steps that were stored before have 0: their order is unknown.
export const script = () => `
ALTER TABLE run_steps ADD COLUMN position INTEGER NOT NULL DEFAULT 0`
