//! WebAssembly modules for proxies, with the ABI of proxy-wasm 0.2.1.

pub use wasm_encoder::{BlockType, Function, MemArg, MemArgTarget, ValType};
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, EntityType, ExportKind, ExportSection, FunctionSection,
    GlobalSection, GlobalType, ImportSection, MemorySection, MemoryType, Module, TypeSection,
};

/// Memory from here on is for the host: texts of a filter are below.
pub const HEAP: i32 = 1024;
/// The variable with the first free address: a filter that sets it to [`HEAP`] frees what the host allocated.
pub const FREE: u32 = 0;
const I32: ValType = ValType::I32;

/// What a filter has beside the parts of every module: memory, an allocator for the host, its ABI version.
pub struct ProxyWasm<'a> {
    /// Functions of the host with the types of their parameters. Each returns an `i32`; its number is its place here.
    pub imports: &'a [(&'a str, &'a [ValType])],
    /// Texts by their addresses.
    pub texts: &'a [(i32, &'a str)],
    /// Body of `proxy_on_configure`; 1 is success.
    pub configure: Function,
    /// A callback for headers, which returns an action: 0 goes on, 1 stops.
    pub callback: Option<(&'a str, Function)>,
}

impl ProxyWasm<'_> {
    /// The module in its binary form.
    pub fn encode(&self) -> Vec<u8> {
        let (mut types, mut imports, mut functions) =
            (TypeSection::new(), ImportSection::new(), FunctionSection::new());
        let (mut exports, mut code) = (ExportSection::new(), CodeSection::new());
        for (name, parameters) in self.imports {
            imports.import("env", name, EntityType::Function(types.len()));
            types.ty().function(parameters.iter().copied(), [I32]);
        }
        for (name, parameters, results, body) in self.functions() {
            exports.export(name, ExportKind::Func, types.len());
            functions.function(types.len());
            types.ty().function(vec![I32; parameters], vec![I32; results]);
            code.function(&body);
        }
        exports.export("memory", ExportKind::Memory, 0);
        let (mut memories, mut globals, mut data) =
            (MemorySection::new(), GlobalSection::new(), DataSection::new());
        // Headers of a request have at most 60 KiB.
        memories.memory(MemoryType {
            minimum: 3,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let free = GlobalType { val_type: I32, mutable: true, shared: false };
        globals.global(free, &ConstExpr::i32_const(HEAP));
        for (address, text) in self.texts {
            data.active(0, &ConstExpr::i32_const(*address), text.bytes());
        }
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&memories).section(&globals);
        module.section(&exports).section(&code).section(&data);
        module.finish()
    }

    /// Exported functions: name, numbers of parameters and results, body. A function has the number of its type.
    fn functions(&self) -> Vec<(&str, usize, usize, Function)> {
        let mut allocate = Function::new([(1, I32)]);
        allocate.instructions().global_get(FREE).local_set(1);
        allocate.instructions().local_get(1).local_get(0).i32_add().global_set(FREE).local_get(1).end();
        let mut functions = vec![
            ("proxy_abi_version_0_2_1", 0, 0, body(|_| ())),
            ("proxy_on_memory_allocate", 1, 1, allocate),
            ("proxy_on_context_create", 2, 0, body(|_| ())),
            ("proxy_on_vm_start", 2, 1, succeeding()),
            ("proxy_on_configure", 2, 1, self.configure.clone()),
        ];
        functions.extend(self.callback.clone().map(|(name, body)| (name, 3, 1, body)));
        functions
    }
}

/// A function without variables of its own.
pub fn body(write: impl FnOnce(&mut wasm_encoder::InstructionSink<'_>)) -> Function {
    let mut function = Function::new([]);
    write(&mut function.instructions());
    function.instructions().end();
    function
}

/// The body of a callback that does nothing.
pub fn succeeding() -> Function {
    body(|code| {
        code.i32_const(1);
    })
}
