/** Generated from docs/openapi.json by `npm run generate`; do not edit. */
export interface paths {
    "/api/v1/auth/sign-in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sign in with e-mail and password */
        post: operations["signIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/sign-out": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End the session */
        post: operations["signOut"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who is signed in */
        get: operations["me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/enterprise": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The enterprise and its settings */
        get: operations["getEnterprise"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change name or settings */
        patch: operations["patchEnterprise"];
        trace?: never;
    };
    "/api/v1/organisation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tree with live use of every limit */
        get: operations["getOrganisation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One node with its limits and those above */
        get: operations["getNode"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/departments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Add a department */
        post: operations["createDepartment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/departments/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One department */
        get: operations["getDepartment"];
        put?: never;
        post?: never;
        /** Delete an empty department; its history stays */
        delete: operations["deleteDepartment"];
        options?: never;
        head?: never;
        /** Rename, move, disable */
        patch: operations["patchDepartment"];
        trace?: never;
    };
    "/api/v1/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Users, newest first */
        get: operations["listUsers"];
        put?: never;
        /** Add a person or a service account */
        post: operations["createUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One user */
        get: operations["getUser"];
        put?: never;
        post?: never;
        /** Delete a user and their keys; history stays */
        delete: operations["deleteUser"];
        options?: never;
        head?: never;
        /** Change or move a user; past spend stays where it was */
        patch: operations["patchUser"];
        trace?: never;
    };
    "/api/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** API keys, newest first */
        get: operations["listKeys"];
        put?: never;
        /** Make a key; the secret is shown this once */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One key */
        get: operations["getKey"];
        put?: never;
        post?: never;
        /** Delete a disabled key; history stays */
        delete: operations["deleteKey"];
        options?: never;
        head?: never;
        /** Rename, restrict, disable */
        patch: operations["patchKey"];
        trace?: never;
    };
    "/api/v1/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set a limit on a node */
        post: operations["createLimit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/limits/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One limit */
        get: operations["getLimit"];
        put?: never;
        post?: never;
        /** Remove a limit; what was counted stays */
        delete: operations["deleteLimit"];
        options?: never;
        head?: never;
        /** Change a limit; in force on the next call */
        patch: operations["patchLimit"];
        trace?: never;
    };
    "/api/v1/upstreams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Providers */
        get: operations["listUpstreams"];
        put?: never;
        /** Add a provider */
        post: operations["createUpstream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/upstreams/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One provider */
        get: operations["getUpstream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change a provider */
        patch: operations["patchUpstream"];
        trace?: never;
    };
    "/api/v1/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Models with routes and prices */
        get: operations["listModels"];
        put?: never;
        /** Add a model */
        post: operations["createModel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/models/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One model */
        get: operations["getModel"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change a model or its routes */
        patch: operations["patchModel"];
        trace?: never;
    };
    "/api/v1/models/{id}/prices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A new price version; closes the one before */
        post: operations["createPrice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Booked usage, grouped, from the ledger */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Look up one call by request id or event id */
        get: operations["getRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/exports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Exports, newest first */
        get: operations["listExports"];
        put?: never;
        /** Start an export */
        post: operations["createExport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/exports/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Progress of an export */
        get: operations["getExport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/exports/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop an export */
        post: operations["cancelExport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/exports/{id}/file": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The finished file */
        get: operations["downloadExport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who changed what, newest first */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/metering": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far the books are complete */
        get: operations["getMeteringStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reconciliation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counters against ledger against roll-ups, this month */
        get: operations["getReconciliation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reconciliation/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Comparisons that the worker made, newest first */
        get: operations["listReconcileRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reconciliation/repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set one scope's counter of this month to what the ledger has; only while nothing is under way */
        post: operations["repairCounter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/provider-files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Imported usage files of providers, newest first */
        get: operations["listProviderFiles"];
        put?: never;
        /** Import a provider's own usage file; the same file again is the same import */
        post: operations["importProviderFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/provider-files/{id}/match": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A provider's file against the books, both ways */
        get: operations["matchProviderFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Records of this enterprise that could not be booked, newest first; a page may be short */
        get: operations["listDeadLetters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dead-letters/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Try to book a record again */
        post: operations["replayDeadLetter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/metering/accept-hole": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take missing sequence numbers for lost, so that the books can be complete beyond them */
        post: operations["acceptHole"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Error: {
            error: {
                code: string;
                message: string;
                details: {
                    [key: string]: unknown;
                };
                requestId: string;
            };
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    signIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** Format: email */
                    email: string;
                    password: string;
                };
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        user: {
                            /** Format: uuid */
                            id: string;
                            name: string;
                            email: string;
                            /** @enum {string} */
                            role: "owner" | "admin" | "finance" | "manager" | "member";
                            /** Format: uuid */
                            departmentId: string;
                        };
                        enterprise: {
                            /** Format: uuid */
                            id: string;
                            name: string;
                            timeZone: string;
                            currency: string;
                        };
                        permissions: ("tree.read" | "tree.write" | "limits.write" | "keys.read" | "keys.write" | "models.read" | "models.write" | "usage.read" | "exports.run" | "audit.read" | "reconciliation.read" | "reconciliation.write" | "settings.write" | "members.write")[];
                        csrfToken: string;
                    };
                };
            };
            /** @description unauthenticated */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description locked_out */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    signOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        user: {
                            /** Format: uuid */
                            id: string;
                            name: string;
                            email: string;
                            /** @enum {string} */
                            role: "owner" | "admin" | "finance" | "manager" | "member";
                            /** Format: uuid */
                            departmentId: string;
                        };
                        enterprise: {
                            /** Format: uuid */
                            id: string;
                            name: string;
                            timeZone: string;
                            currency: string;
                        };
                        permissions: ("tree.read" | "tree.write" | "limits.write" | "keys.read" | "keys.write" | "models.read" | "models.write" | "usage.read" | "exports.run" | "audit.read" | "reconciliation.read" | "reconciliation.write" | "settings.write" | "members.write")[];
                        csrfToken: string;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getEnterprise: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        name: string;
                        timeZone: string;
                        currency: string;
                        settings: {
                            windowOutputReservePercent: number;
                            /** @enum {string} */
                            onCapBeyondBudget: "refuse" | "clamp";
                            /** @enum {string} */
                            degradedMode: "local" | "closed" | "open";
                            degradedBudgetSharePercent: number;
                            leaseMs: number;
                            /**
                             * @default {
                             *       "allow": [],
                             *       "deny": []
                             *     }
                             */
                            ipRules: {
                                allow: (string)[];
                                deny: (string)[];
                            };
                            /**
                             * @default {
                             *       "maxWaitMs": 0,
                             *       "maxWaiting": 100,
                             *       "streamNotices": true
                             *     }
                             */
                            queue: {
                                maxWaitMs: number;
                                maxWaiting: number;
                                /** @default true */
                                streamNotices: boolean;
                            };
                        };
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    patchEnterprise: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name?: string;
                    settings?: {
                        windowOutputReservePercent?: number;
                        /** @enum {string} */
                        onCapBeyondBudget?: "refuse" | "clamp";
                        /** @enum {string} */
                        degradedMode?: "local" | "closed" | "open";
                        degradedBudgetSharePercent?: number;
                        leaseMs?: number;
                        ipRules?: {
                            allow: (string)[];
                            deny: (string)[];
                        };
                        queue?: {
                            maxWaitMs?: number;
                            maxWaiting?: number;
                            streamNotices?: boolean;
                        };
                    };
                };
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        name: string;
                        timeZone: string;
                        currency: string;
                        settings: {
                            windowOutputReservePercent: number;
                            /** @enum {string} */
                            onCapBeyondBudget: "refuse" | "clamp";
                            /** @enum {string} */
                            degradedMode: "local" | "closed" | "open";
                            degradedBudgetSharePercent: number;
                            leaseMs: number;
                            /**
                             * @default {
                             *       "allow": [],
                             *       "deny": []
                             *     }
                             */
                            ipRules: {
                                allow: (string)[];
                                deny: (string)[];
                            };
                            /**
                             * @default {
                             *       "maxWaitMs": 0,
                             *       "maxWaiting": 100,
                             *       "streamNotices": true
                             *     }
                             */
                            queue: {
                                maxWaitMs: number;
                                maxWaiting: number;
                                /** @default true */
                                streamNotices: boolean;
                            };
                        };
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getOrganisation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        enterprise: {
                            /** Format: uuid */
                            id: string;
                            name: string;
                            timeZone: string;
                            currency: string;
                        };
                        nodes: {
                            /** Format: uuid */
                            id: string;
                            /** @enum {string} */
                            level: "enterprise" | "department" | "user" | "key";
                            parentId: string | null;
                            name: string;
                            /** @enum {string} */
                            status: "active" | "disabled" | "deleted";
                            month: {
                                periodId: string;
                                requests: string;
                                tokens: string;
                                cost: string;
                                reservedTokens: string;
                                reservedCost: string;
                                inFlight: number;
                            } | null;
                            limits: {
                                /** Format: uuid */
                                id: string;
                                /** @enum {string} */
                                scopeLevel: "enterprise" | "department" | "user" | "key";
                                /** Format: uuid */
                                scopeId: string;
                                /** @enum {string} */
                                metric: "requests" | "tokens" | "input_tokens" | "output_tokens" | "cost" | "concurrency";
                                window: ("second" | "minute" | "hour" | "day" | "week" | "month" | "total") | null;
                                model: string | null;
                                amount: string | null;
                                /** @enum {string} */
                                mode: "hard" | "soft" | "shadow";
                                version: number;
                                used: string | null;
                                reserved: string | null;
                                resetsAt: string | null;
                            }[];
                            version: number;
                        }[];
                        live: boolean;
                        /** Format: date-time */
                        at: string;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getNode: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** @enum {string} */
                        level: "enterprise" | "department" | "user" | "key";
                        parentId: string | null;
                        name: string;
                        /** @enum {string} */
                        status: "active" | "disabled" | "deleted";
                        month: {
                            periodId: string;
                            requests: string;
                            tokens: string;
                            cost: string;
                            reservedTokens: string;
                            reservedCost: string;
                            inFlight: number;
                        } | null;
                        limits: {
                            /** Format: uuid */
                            id: string;
                            /** @enum {string} */
                            scopeLevel: "enterprise" | "department" | "user" | "key";
                            /** Format: uuid */
                            scopeId: string;
                            /** @enum {string} */
                            metric: "requests" | "tokens" | "input_tokens" | "output_tokens" | "cost" | "concurrency";
                            window: ("second" | "minute" | "hour" | "day" | "week" | "month" | "total") | null;
                            model: string | null;
                            amount: string | null;
                            /** @enum {string} */
                            mode: "hard" | "soft" | "shadow";
                            version: number;
                            used: string | null;
                            reserved: string | null;
                            resetsAt: string | null;
                        }[];
                        version: number;
                        alsoLimitedBy: {
                            /** @enum {string} */
                            level: "enterprise" | "department" | "user" | "key";
                            /** Format: uuid */
                            id: string;
                            name: string;
                            limits: {
                                /** Format: uuid */
                                id: string;
                                /** @enum {string} */
                                scopeLevel: "enterprise" | "department" | "user" | "key";
                                /** Format: uuid */
                                scopeId: string;
                                /** @enum {string} */
                                metric: "requests" | "tokens" | "input_tokens" | "output_tokens" | "cost" | "concurrency";
                                window: ("second" | "minute" | "hour" | "day" | "week" | "month" | "total") | null;
                                model: string | null;
                                amount: string | null;
                                /** @enum {string} */
                                mode: "hard" | "soft" | "shadow";
                                version: number;
                                used: string | null;
                                reserved: string | null;
                                resetsAt: string | null;
                            }[];
                        }[];
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    createDepartment: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name: string;
                    /** @default null */
                    parentId?: string | null;
                    /** @default null */
                    costCenter?: string | null;
                };
            };
        };
        responses: {
            /** @description OK */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        parentId: string | null;
                        name: string;
                        costCenter: string | null;
                        /** @enum {string} */
                        status: "active" | "disabled" | "deleted";
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getDepartment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        parentId: string | null;
                        name: string;
                        costCenter: string | null;
                        /** @enum {string} */
                        status: "active" | "disabled" | "deleted";
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    deleteDepartment: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    patchDepartment: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name?: string;
                    parentId?: string | null;
                    costCenter?: string | null;
                    /** @enum {string} */
                    status?: "active" | "disabled";
                };
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        parentId: string | null;
                        name: string;
                        costCenter: string | null;
                        /** @enum {string} */
                        status: "active" | "disabled" | "deleted";
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    listUsers: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                departmentId?: string;
                search?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            /** Format: uuid */
                            id: string;
                            /** Format: uuid */
                            departmentId: string;
                            /** @enum {string} */
                            kind: "person" | "service";
                            name: string;
                            email: string | null;
                            /** @enum {string} */
                            role: "owner" | "admin" | "finance" | "manager" | "member";
                            /** @enum {string} */
                            status: "active" | "disabled" | "deleted";
                            version: number;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    createUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** Format: uuid */
                    departmentId: string;
                    /**
                     * @default person
                     * @enum {string}
                     */
                    kind?: "person" | "service";
                    name: string;
                    /** @default null */
                    email?: string | null;
                    /**
                     * @default member
                     * @enum {string}
                     */
                    role?: "owner" | "admin" | "finance" | "manager" | "member";
                    /** @default null */
                    password?: string | null;
                };
            };
        };
        responses: {
            /** @description OK */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** Format: uuid */
                        departmentId: string;
                        /** @enum {string} */
                        kind: "person" | "service";
                        name: string;
                        email: string | null;
                        /** @enum {string} */
                        role: "owner" | "admin" | "finance" | "manager" | "member";
                        /** @enum {string} */
                        status: "active" | "disabled" | "deleted";
                        version: number;
                    };
                };
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** Format: uuid */
                        departmentId: string;
                        /** @enum {string} */
                        kind: "person" | "service";
                        name: string;
                        email: string | null;
                        /** @enum {string} */
                        role: "owner" | "admin" | "finance" | "manager" | "member";
                        /** @enum {string} */
                        status: "active" | "disabled" | "deleted";
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    deleteUser: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    patchUser: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** Format: uuid */
                    departmentId?: string;
                    name?: string;
                    email?: string | null;
                    /** @enum {string} */
                    role?: "owner" | "admin" | "finance" | "manager" | "member";
                    password?: string;
                    /** @enum {string} */
                    status?: "active" | "disabled";
                };
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** Format: uuid */
                        departmentId: string;
                        /** @enum {string} */
                        kind: "person" | "service";
                        name: string;
                        email: string | null;
                        /** @enum {string} */
                        role: "owner" | "admin" | "finance" | "manager" | "member";
                        /** @enum {string} */
                        status: "active" | "disabled" | "deleted";
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    listKeys: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                userId?: string;
                departmentId?: string;
                search?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            /** Format: uuid */
                            id: string;
                            /** Format: uuid */
                            userId: string;
                            userName: string;
                            /** Format: uuid */
                            departmentId: string;
                            departmentName: string;
                            name: string;
                            prefix: string;
                            /** @enum {string} */
                            status: "active" | "disabled" | "deleted";
                            allowedModels: string[] | null;
                            expiresAt: string | null;
                            /** Format: date-time */
                            createdAt: string;
                            version: number;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** Format: uuid */
                    userId: string;
                    name: string;
                    /** @default null */
                    allowedModels?: string[] | null;
                    /** @default null */
                    expiresAt?: string | null;
                };
            };
        };
        responses: {
            /** @description OK */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        key: {
                            /** Format: uuid */
                            id: string;
                            /** Format: uuid */
                            userId: string;
                            userName: string;
                            /** Format: uuid */
                            departmentId: string;
                            departmentName: string;
                            name: string;
                            prefix: string;
                            /** @enum {string} */
                            status: "active" | "disabled" | "deleted";
                            allowedModels: string[] | null;
                            expiresAt: string | null;
                            /** Format: date-time */
                            createdAt: string;
                            version: number;
                        };
                        secret: string;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** Format: uuid */
                        userId: string;
                        userName: string;
                        /** Format: uuid */
                        departmentId: string;
                        departmentName: string;
                        name: string;
                        prefix: string;
                        /** @enum {string} */
                        status: "active" | "disabled" | "deleted";
                        allowedModels: string[] | null;
                        expiresAt: string | null;
                        /** Format: date-time */
                        createdAt: string;
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    deleteKey: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    patchKey: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name?: string;
                    /** @enum {string} */
                    status?: "active" | "disabled";
                    allowedModels?: string[] | null;
                    expiresAt?: string | null;
                };
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** Format: uuid */
                        userId: string;
                        userName: string;
                        /** Format: uuid */
                        departmentId: string;
                        departmentName: string;
                        name: string;
                        prefix: string;
                        /** @enum {string} */
                        status: "active" | "disabled" | "deleted";
                        allowedModels: string[] | null;
                        expiresAt: string | null;
                        /** Format: date-time */
                        createdAt: string;
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    createLimit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @enum {string} */
                    scopeLevel: "enterprise" | "department" | "user" | "key";
                    /** Format: uuid */
                    scopeId: string;
                    /** @enum {string} */
                    metric: "requests" | "tokens" | "input_tokens" | "output_tokens" | "cost" | "concurrency";
                    window: ("second" | "minute" | "hour" | "day" | "week" | "month" | "total") | null;
                    /** @default null */
                    model?: string | null;
                    amount: string | null;
                    /**
                     * @default hard
                     * @enum {string}
                     */
                    mode?: "hard" | "soft" | "shadow";
                };
            };
        };
        responses: {
            /** @description OK */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** @enum {string} */
                        scopeLevel: "enterprise" | "department" | "user" | "key";
                        /** Format: uuid */
                        scopeId: string;
                        /** @enum {string} */
                        metric: "requests" | "tokens" | "input_tokens" | "output_tokens" | "cost" | "concurrency";
                        window: ("second" | "minute" | "hour" | "day" | "week" | "month" | "total") | null;
                        model: string | null;
                        amount: string | null;
                        /** @enum {string} */
                        mode: "hard" | "soft" | "shadow";
                        version: number;
                    };
                };
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getLimit: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** @enum {string} */
                        scopeLevel: "enterprise" | "department" | "user" | "key";
                        /** Format: uuid */
                        scopeId: string;
                        /** @enum {string} */
                        metric: "requests" | "tokens" | "input_tokens" | "output_tokens" | "cost" | "concurrency";
                        window: ("second" | "minute" | "hour" | "day" | "week" | "month" | "total") | null;
                        model: string | null;
                        amount: string | null;
                        /** @enum {string} */
                        mode: "hard" | "soft" | "shadow";
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    deleteLimit: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    patchLimit: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    amount?: string | null;
                    /** @enum {string} */
                    mode?: "hard" | "soft" | "shadow";
                };
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** @enum {string} */
                        scopeLevel: "enterprise" | "department" | "user" | "key";
                        /** Format: uuid */
                        scopeId: string;
                        /** @enum {string} */
                        metric: "requests" | "tokens" | "input_tokens" | "output_tokens" | "cost" | "concurrency";
                        window: ("second" | "minute" | "hour" | "day" | "week" | "month" | "total") | null;
                        model: string | null;
                        amount: string | null;
                        /** @enum {string} */
                        mode: "hard" | "soft" | "shadow";
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    listUpstreams: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            /** Format: uuid */
                            id: string;
                            name: string;
                            /** @enum {string} */
                            dialect: "openai" | "anthropic";
                            baseUrl: string;
                            hasApiKey: boolean;
                            connectTimeoutMs: number;
                            firstByteTimeoutMs: number;
                            idleTimeoutMs: number;
                            /** @enum {string} */
                            onClientGone: "drain" | "abort";
                            enabled: boolean;
                            version: number;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    createUpstream: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name: string;
                    /**
                     * @default openai
                     * @enum {string}
                     */
                    dialect?: "openai" | "anthropic";
                    /** Format: uri */
                    baseUrl: string;
                    /** @default null */
                    apiKey?: string | null;
                    /**
                     * @default drain
                     * @enum {string}
                     */
                    onClientGone?: "drain" | "abort";
                };
            };
        };
        responses: {
            /** @description OK */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        name: string;
                        /** @enum {string} */
                        dialect: "openai" | "anthropic";
                        baseUrl: string;
                        hasApiKey: boolean;
                        connectTimeoutMs: number;
                        firstByteTimeoutMs: number;
                        idleTimeoutMs: number;
                        /** @enum {string} */
                        onClientGone: "drain" | "abort";
                        enabled: boolean;
                        version: number;
                    };
                };
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getUpstream: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        name: string;
                        /** @enum {string} */
                        dialect: "openai" | "anthropic";
                        baseUrl: string;
                        hasApiKey: boolean;
                        connectTimeoutMs: number;
                        firstByteTimeoutMs: number;
                        idleTimeoutMs: number;
                        /** @enum {string} */
                        onClientGone: "drain" | "abort";
                        enabled: boolean;
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    patchUpstream: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name?: string;
                    /** Format: uri */
                    baseUrl?: string;
                    apiKey?: string | null;
                    connectTimeoutMs?: number;
                    firstByteTimeoutMs?: number;
                    idleTimeoutMs?: number;
                    /** @enum {string} */
                    onClientGone?: "drain" | "abort";
                    enabled?: boolean;
                };
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        name: string;
                        /** @enum {string} */
                        dialect: "openai" | "anthropic";
                        baseUrl: string;
                        hasApiKey: boolean;
                        connectTimeoutMs: number;
                        firstByteTimeoutMs: number;
                        idleTimeoutMs: number;
                        /** @enum {string} */
                        onClientGone: "drain" | "abort";
                        enabled: boolean;
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    listModels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            /** Format: uuid */
                            id: string;
                            alias: string;
                            /** @enum {string} */
                            kind: "chat" | "embedding";
                            /** @enum {string} */
                            dialect: "openai" | "anthropic";
                            contextWindowTokens: number;
                            maxOutputTokens: number;
                            defaultOutputReserve: number;
                            enabled: boolean;
                            routes: {
                                /** Format: uuid */
                                upstreamId: string;
                                upstreamModel: string;
                                /** @default 100 */
                                weight: number;
                                /** @default 0 */
                                priority: number;
                            }[];
                            prices: {
                                /** Format: uuid */
                                id: string;
                                currency: string;
                                /** Format: date-time */
                                from: string;
                                to: string | null;
                                perMillionTokens: {
                                    [key: string]: string;
                                };
                                perRequest: string;
                            }[];
                            version: number;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    createModel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    alias: string;
                    /**
                     * @default chat
                     * @enum {string}
                     */
                    kind?: "chat" | "embedding";
                    /**
                     * @default openai
                     * @enum {string}
                     */
                    dialect?: "openai" | "anthropic";
                    contextWindowTokens: number;
                    maxOutputTokens: number;
                    /** @default 1024 */
                    defaultOutputReserve?: number;
                    routes: {
                        /** Format: uuid */
                        upstreamId: string;
                        upstreamModel: string;
                        /** @default 100 */
                        weight?: number;
                        /** @default 0 */
                        priority?: number;
                    }[];
                    price: {
                        /** @default null */
                        from?: string | null;
                        perMillionTokens: {
                            [key: string]: string;
                        };
                        /** @default 0 */
                        perRequest?: string;
                    };
                };
            };
        };
        responses: {
            /** @description OK */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        alias: string;
                        /** @enum {string} */
                        kind: "chat" | "embedding";
                        /** @enum {string} */
                        dialect: "openai" | "anthropic";
                        contextWindowTokens: number;
                        maxOutputTokens: number;
                        defaultOutputReserve: number;
                        enabled: boolean;
                        routes: {
                            /** Format: uuid */
                            upstreamId: string;
                            upstreamModel: string;
                            /** @default 100 */
                            weight: number;
                            /** @default 0 */
                            priority: number;
                        }[];
                        prices: {
                            /** Format: uuid */
                            id: string;
                            currency: string;
                            /** Format: date-time */
                            from: string;
                            to: string | null;
                            perMillionTokens: {
                                [key: string]: string;
                            };
                            perRequest: string;
                        }[];
                        version: number;
                    };
                };
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        alias: string;
                        /** @enum {string} */
                        kind: "chat" | "embedding";
                        /** @enum {string} */
                        dialect: "openai" | "anthropic";
                        contextWindowTokens: number;
                        maxOutputTokens: number;
                        defaultOutputReserve: number;
                        enabled: boolean;
                        routes: {
                            /** Format: uuid */
                            upstreamId: string;
                            upstreamModel: string;
                            /** @default 100 */
                            weight: number;
                            /** @default 0 */
                            priority: number;
                        }[];
                        prices: {
                            /** Format: uuid */
                            id: string;
                            currency: string;
                            /** Format: date-time */
                            from: string;
                            to: string | null;
                            perMillionTokens: {
                                [key: string]: string;
                            };
                            perRequest: string;
                        }[];
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    patchModel: {
        parameters: {
            query?: never;
            header: {
                /** @description The row's version in double quotes. */
                "if-match": string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    contextWindowTokens?: number;
                    maxOutputTokens?: number;
                    defaultOutputReserve?: number;
                    routes?: {
                        /** Format: uuid */
                        upstreamId: string;
                        upstreamModel: string;
                        /** @default 100 */
                        weight?: number;
                        /** @default 0 */
                        priority?: number;
                    }[];
                    enabled?: boolean;
                };
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        alias: string;
                        /** @enum {string} */
                        kind: "chat" | "embedding";
                        /** @enum {string} */
                        dialect: "openai" | "anthropic";
                        contextWindowTokens: number;
                        maxOutputTokens: number;
                        defaultOutputReserve: number;
                        enabled: boolean;
                        routes: {
                            /** Format: uuid */
                            upstreamId: string;
                            upstreamModel: string;
                            /** @default 100 */
                            weight: number;
                            /** @default 0 */
                            priority: number;
                        }[];
                        prices: {
                            /** Format: uuid */
                            id: string;
                            currency: string;
                            /** Format: date-time */
                            from: string;
                            to: string | null;
                            perMillionTokens: {
                                [key: string]: string;
                            };
                            perRequest: string;
                        }[];
                        version: number;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    createPrice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default null */
                    from?: string | null;
                    perMillionTokens: {
                        [key: string]: string;
                    };
                    /** @default 0 */
                    perRequest?: string;
                };
            };
        };
        responses: {
            /** @description OK */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        alias: string;
                        /** @enum {string} */
                        kind: "chat" | "embedding";
                        /** @enum {string} */
                        dialect: "openai" | "anthropic";
                        contextWindowTokens: number;
                        maxOutputTokens: number;
                        defaultOutputReserve: number;
                        enabled: boolean;
                        routes: {
                            /** Format: uuid */
                            upstreamId: string;
                            upstreamModel: string;
                            /** @default 100 */
                            weight: number;
                            /** @default 0 */
                            priority: number;
                        }[];
                        prices: {
                            /** Format: uuid */
                            id: string;
                            currency: string;
                            /** Format: date-time */
                            from: string;
                            to: string | null;
                            perMillionTokens: {
                                [key: string]: string;
                            };
                            perRequest: string;
                        }[];
                        version: number;
                    };
                };
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getUsage: {
        parameters: {
            query: {
                from: string;
                to: string;
                departmentId?: string;
                userId?: string;
                keyId?: string;
                model?: string;
                groupBy?: "none" | "department" | "user" | "key" | "model" | "provider";
                granularity?: "none" | "hour" | "day" | "month";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        timeZone: string;
                        currency: string;
                        /** Format: date-time */
                        from: string;
                        /** Format: date-time */
                        to: string;
                        rows: {
                            groupId: string | null;
                            groupName: string | null;
                            deleted: boolean;
                            period: string | null;
                            requests: string;
                            inputTokens: string;
                            cachedInputTokens: string;
                            outputTokens: string;
                            tokens: string;
                            cost: string;
                        }[];
                        totals: {
                            requests: string;
                            inputTokens: string;
                            cachedInputTokens: string;
                            outputTokens: string;
                            tokens: string;
                            cost: string;
                        };
                        completeUpTo: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getRequest: {
        parameters: {
            query: {
                id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        requestId: string;
                        attempts: {
                            /** Format: uuid */
                            eventId: string;
                            /** Format: date-time */
                            at: string;
                            department: string;
                            user: string;
                            key: string;
                            model: string;
                            provider: string;
                            route: string;
                            status: string;
                            estimated: boolean;
                            late: boolean;
                            inputTokens: string;
                            outputTokens: string;
                            cost: string;
                            /** Format: date-time */
                            startedAt: string;
                            firstTokenAt: string | null;
                            /** Format: date-time */
                            endedAt: string;
                        }[];
                        refusals: {
                            /** Format: date-time */
                            at: string;
                            outcome: string;
                            code: string;
                            scopeLevel: string | null;
                            scopeName: string | null;
                            metric: string | null;
                        }[];
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    listExports: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            /** Format: uuid */
                            id: string;
                            kind: string;
                            profile: string;
                            request: {
                                [key: string]: unknown;
                            };
                            /** @enum {string} */
                            status: "queued" | "running" | "done" | "failed" | "cancelled";
                            rowsDone: string;
                            rowsTotal: string | null;
                            totalCost: string | null;
                            completeUpTo: string | null;
                            fileName: string | null;
                            fileSha256: string | null;
                            failure: string | null;
                            requestedBy: string;
                            /** Format: date-time */
                            createdAt: string;
                            finishedAt: string | null;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    createExport: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @constant */
                    kind: "usage-csv";
                    /**
                     * @default excel
                     * @enum {string}
                     */
                    profile?: "excel" | "machine";
                    /** Format: date */
                    from: string;
                    /** Format: date */
                    to: string;
                    /** Format: uuid */
                    departmentId?: string;
                    /** Format: uuid */
                    userId?: string;
                    /** Format: uuid */
                    keyId?: string;
                    model?: string;
                };
            };
        };
        responses: {
            /** @description OK */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        kind: string;
                        profile: string;
                        request: {
                            [key: string]: unknown;
                        };
                        /** @enum {string} */
                        status: "queued" | "running" | "done" | "failed" | "cancelled";
                        rowsDone: string;
                        rowsTotal: string | null;
                        totalCost: string | null;
                        completeUpTo: string | null;
                        fileName: string | null;
                        fileSha256: string | null;
                        failure: string | null;
                        requestedBy: string;
                        /** Format: date-time */
                        createdAt: string;
                        finishedAt: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        kind: string;
                        profile: string;
                        request: {
                            [key: string]: unknown;
                        };
                        /** @enum {string} */
                        status: "queued" | "running" | "done" | "failed" | "cancelled";
                        rowsDone: string;
                        rowsTotal: string | null;
                        totalCost: string | null;
                        completeUpTo: string | null;
                        fileName: string | null;
                        fileSha256: string | null;
                        failure: string | null;
                        requestedBy: string;
                        /** Format: date-time */
                        createdAt: string;
                        finishedAt: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    cancelExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        kind: string;
                        profile: string;
                        request: {
                            [key: string]: unknown;
                        };
                        /** @enum {string} */
                        status: "queued" | "running" | "done" | "failed" | "cancelled";
                        rowsDone: string;
                        rowsTotal: string | null;
                        totalCost: string | null;
                        completeUpTo: string | null;
                        fileName: string | null;
                        fileSha256: string | null;
                        failure: string | null;
                        requestedBy: string;
                        /** Format: date-time */
                        createdAt: string;
                        finishedAt: string | null;
                    };
                };
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    downloadExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/csv": string;
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    listAudit: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                targetId?: string;
                search?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            /** Format: uuid */
                            id: string;
                            /** Format: date-time */
                            at: string;
                            actorName: string;
                            requestId: string;
                            action: string;
                            targetType: string;
                            targetId: string;
                            targetName: string;
                            before: unknown;
                            after: unknown;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getMeteringStatus: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        completeUpTo: string | null;
                        lagEvents: string;
                        holes: {
                            shard: number;
                            epoch: string;
                            fromSeq: string;
                            toSeq: string;
                        }[];
                        deadLetters: number;
                        conflicts: number;
                        alarms: {
                            kind: string;
                            subject: string;
                            /** Format: date-time */
                            raisedAt: string;
                        }[];
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getReconciliation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        periodId: string;
                        /** Format: date-time */
                        at: string;
                        balanced: boolean;
                        scopes: {
                            /** @enum {string} */
                            level: "enterprise" | "department" | "user" | "key";
                            /** Format: uuid */
                            id: string;
                            name: string;
                            counter: {
                                requests: string;
                                tokens: string;
                                cost: string;
                            };
                            ledger: {
                                requests: string;
                                tokens: string;
                                cost: string;
                            };
                            rollup: {
                                requests: string;
                                tokens: string;
                                cost: string;
                            };
                            difference: string;
                        }[];
                        metering: {
                            completeUpTo: string | null;
                            lagEvents: string;
                            holes: {
                                shard: number;
                                epoch: string;
                                fromSeq: string;
                                toSeq: string;
                            }[];
                            deadLetters: number;
                            conflicts: number;
                            alarms: {
                                kind: string;
                                subject: string;
                                /** Format: date-time */
                                raisedAt: string;
                            }[];
                        };
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    listReconcileRuns: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            /** Format: uuid */
                            id: string;
                            periodId: string;
                            /** Format: date-time */
                            at: string;
                            scopes: number;
                            drifted: number;
                            settled: boolean;
                            drifts: {
                                /** Format: uuid */
                                scopeId: string;
                                /** @enum {string} */
                                level: "enterprise" | "department" | "user" | "key";
                                counter: {
                                    requests: string;
                                    inputTokens: string;
                                    outputTokens: string;
                                    cost: string;
                                };
                                rollup: {
                                    requests: string;
                                    inputTokens: string;
                                    outputTokens: string;
                                    cost: string;
                                };
                            }[];
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    repairCounter: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** Format: uuid */
                    scopeId: string;
                    reason: string;
                };
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        repairId: string | null;
                        /** Format: uuid */
                        scopeId: string;
                        periodId: string;
                        before: {
                            requests: string;
                            inputTokens: string;
                            outputTokens: string;
                            cost: string;
                        };
                        after: {
                            requests: string;
                            inputTokens: string;
                            outputTokens: string;
                            cost: string;
                        };
                    };
                };
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    listProviderFiles: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            /** Format: uuid */
                            id: string;
                            /** Format: uuid */
                            upstreamId: string;
                            /** @enum {string} */
                            dialect: "openai" | "anthropic";
                            fileName: string;
                            sha256: string;
                            lines: number;
                            /** Format: date-time */
                            createdAt: string;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    importProviderFile: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** Format: uuid */
                    upstreamId: string;
                    /** @enum {string} */
                    dialect: "openai" | "anthropic";
                    fileName: string;
                    content: string;
                };
            };
        };
        responses: {
            /** @description OK */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                        /** Format: uuid */
                        upstreamId: string;
                        /** @enum {string} */
                        dialect: "openai" | "anthropic";
                        fileName: string;
                        sha256: string;
                        lines: number;
                        /** Format: date-time */
                        createdAt: string;
                    };
                };
            };
            /** @description invalid_request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description body_too_large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    matchProviderFile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        matched: number;
                        differing: {
                            requestId: string | null;
                            model: string;
                            startsAt: string | null;
                            endsAt: string | null;
                            theirs: {
                                requests: string | null;
                                inputTokens: string;
                                cachedTokens: string;
                                outputTokens: string;
                            };
                            ours: {
                                requests: string | null;
                                inputTokens: string;
                                cachedTokens: string;
                                outputTokens: string;
                            };
                        }[];
                        onlyTheirs: {
                            requestId: string | null;
                            model: string;
                            startsAt: string | null;
                            endsAt: string | null;
                            theirs: {
                                requests: string | null;
                                inputTokens: string;
                                cachedTokens: string;
                                outputTokens: string;
                            };
                        }[];
                        onlyOurs: {
                            requestId: string | null;
                            model: string;
                            startsAt: string | null;
                            endsAt: string | null;
                            ours: {
                                requests: string | null;
                                inputTokens: string;
                                cachedTokens: string;
                                outputTokens: string;
                            };
                        }[];
                        truncated: boolean;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    listDeadLetters: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: {
                            /** Format: uuid */
                            id: string;
                            /** Format: date-time */
                            at: string;
                            topic: string;
                            partition: number;
                            offset: string;
                            reason: string;
                            replayedAt: string | null;
                            value: string;
                        }[];
                        nextCursor: string | null;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    replayDeadLetter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        booked: boolean;
                    };
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    acceptHole: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    shard: number;
                    epoch: string;
                    fromSeq: number;
                    toSeq: number;
                    reason: string;
                };
            };
        };
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description invalid_request */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description conflict */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Any other error */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
}
